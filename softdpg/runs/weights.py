"""Arrays in the format safetensors: numbers and names, which can run no code."""

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load


def load_arrays(contents: bytes) -> dict[str, np.ndarray]:
    """The arrays in the contents of a safetensors file; ``ValueError`` if it is none, or has types NumPy has not."""
    try:
        return load(contents)
    except SafetensorError as error:
        raise ValueError(f"not a safetensors file: {error}") from None
    except KeyError as error:
        raise ValueError(f"numbers of type {error.args[0]} are not supported") from None
