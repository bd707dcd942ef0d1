"""What the update works on."""

from typing import Any, NamedTuple

import jax
import numpy as np
from flax.training.train_state import TrainState

Array = jax.Array | np.ndarray


class TargetedState(TrainState):
    """Parameters, their optimiser, and the parameters of the target network."""

    target_params: Any


class Batch(NamedTuple):
    """Transitions: ``(batch, d)``, ``(batch, m)``, ``(batch, d)`` and three times ``(batch,)``.

    ``discounts`` is gamma, or its power for returns of several steps. Then ``next_observations`` are those after these
    steps, and ``successors`` those after the first, ``(batch, d)``, if the buffer knows them.
    """

    observations: Array
    actions: Array
    next_observations: Array
    dones: Array
    rewards: Array
    discounts: Array
    successors: Array | None = None
