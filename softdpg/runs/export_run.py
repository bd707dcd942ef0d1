"""``softdpg export``: the policy of a run as a file for use without softdpg."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from softdpg.errors import UserError
from softdpg.runs.environments import make_env
from softdpg.runs.evaluate_run import open_run

Format = Literal["onnx", "numpy", "safetensors"]
SUFFIXES: dict[Format, str] = {"onnx": ".onnx", "numpy": ".py", "safetensors": ".safetensors"}


def export_run(
    path: Path,
    *,
    to: Format = "onnx",
    out: Path | None = None,
    env_id: str | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
    trust: bool = False,
) -> Path:
    """Write the policy of a run, unfinished ones included; returns the file's path.

    For ``env_id``, ``env_kwargs`` and ``trust`` see :func:`open_run`.
    """
    config, weights = open_run(path, env_id=env_id, env_kwargs=env_kwargs, trust=trust)
    out = out or path / f"policy{SUFFIXES[to]}"
    if out.suffix != SUFFIXES[to]:
        raise UserError(f"--out must end in {SUFFIXES[to]} for --to {to}, not in {out.suffix or 'nothing'!r}")
    if not out.absolute().parent.is_dir():
        raise UserError(f"--out {out}: there is no directory {out.absolute().parent}")
    env = make_env(config.env, config.env_kwargs)
    from softdpg.runs.learner import load_learner

    model = load_learner(config, env, weights)
    try:
        # In a directory of its own, whose name nobody knows: no link can wait in the place of the file.
        with tempfile.TemporaryDirectory(prefix=".policy-", dir=out.absolute().parent) as aside:
            model.export(Path(aside) / out.name).replace(out)
    except OSError as error:
        raise UserError(f"cannot write {out}: {error.strerror}") from None
    except ValueError as error:
        raise UserError(str(error)) from None
    finally:
        env.close()
    return out
