"""``softdpg train --track``: the log and the evaluations of a run in Weights & Biases or MLflow.

Both are configured by their own environment variables, such as ``WANDB_MODE``, ``WANDB_PROJECT``,
``MLFLOW_TRACKING_URI`` and ``MLFLOW_EXPERIMENT_NAME``. A resumed run continues its record there.
"""

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from stable_baselines3.common.logger import KVWriter

from softdpg.runs.config import RunConfig

Service = Literal["wandb", "mlflow"]
_PROJECT = "softdpg"  # unless the environment variables name another one


def make_tracker(service: Service, config: RunConfig, run: str, directory: Path) -> "Tracker":
    """Start or continue the record of a run.

    :param service: ``wandb`` or ``mlflow``
    :param config: resolved settings of the run
    :param run: the identity of the run in its ``config.json``
    :param directory: the run directory
    """
    return (WandbTracker if service == "wandb" else MLflowTracker)(config, run, directory)


class Tracker(KVWriter):
    """An output of SB3's logger that sends numbers to a service."""

    def send(self, values: dict[str, float], step: int) -> None:
        """Send finite numbers."""
        raise NotImplementedError

    def write(self, key_values: dict[str, Any], key_excluded: Mapping[str, Any], step: int = 0) -> None:
        """Send the finite numbers of a line of the log.

        :param key_values: the line
        :param key_excluded: outputs that a key is not meant for; not used
        :param step: environment steps of the run
        """
        numbers = {key: float(value) for key, value in key_values.items() if _is_number(value)}
        self.send({key: value for key, value in numbers.items() if math.isfinite(value)}, step)


class WandbTracker(Tracker):
    """Weights & Biases."""

    def __init__(self, config: RunConfig, run: str, directory: Path) -> None:
        import wandb

        self.run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", _PROJECT),
            id=run,
            resume="allow",
            name=_name(config),
            config=_plain(config),
            dir=str(directory),
        )

    def send(self, values: dict[str, float], step: int) -> None:
        """Send finite numbers."""
        self.run.log(values, step=step)

    def close(self) -> None:
        """End the record."""
        self.run.finish()


class MLflowTracker(Tracker):
    """MLflow."""

    def __init__(self, config: RunConfig, run: str, directory: Path) -> None:
        import mlflow

        mlflow.set_experiment(os.environ.get("MLFLOW_EXPERIMENT_NAME", _PROJECT))
        found: Any = mlflow.search_runs(filter_string=f"tags.softdpg_run = '{run}'", output_format="list")
        if found:
            mlflow.start_run(run_id=found[0].info.run_id)
        else:
            mlflow.start_run(run_name=_name(config), tags={"softdpg_run": run})
            mlflow.log_params(_plain(config))
        self.mlflow = mlflow

    def send(self, values: dict[str, float], step: int) -> None:
        """Send finite numbers."""
        self.mlflow.log_metrics(values, step=step)

    def close(self) -> None:
        """End the record."""
        self.mlflow.end_run()


def _name(config: RunConfig) -> str:
    return f"{config.env_name} {config.algorithm.name} seed {config.seed}"


def _plain(config: RunConfig) -> dict[str, Any]:
    return json.loads(json.dumps({name: value for name, value in config.flat().items() if value is not None}))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) or (hasattr(value, "item") and getattr(value, "ndim", 1) == 0)
