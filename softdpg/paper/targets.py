"""What ``softdpg reproduce`` can be asked for: each table or sweep of the paper is one entry."""

from collections.abc import Mapping
from dataclasses import dataclass

from softdpg.paper.environments import ENVIRONMENTS
from softdpg.paper.protocol import N_SAMPLES, SIGMA


@dataclass(frozen=True)
class Sweep:
    """A hyperparameter of the smoothing at several values, the others held.

    :param parameter: its name in the registry
    :param chosen: the value that the paper uses elsewhere
    :param fixed: the value of the other one
    """

    parameter: str
    values: tuple[float, ...]
    chosen: float
    fixed: tuple[str, float]


@dataclass(frozen=True)
class Target:
    """Runs of the paper: every environment with every algorithm that is asked for.

    A sweep is run by the algorithms that have its parameter.
    """

    name: str
    envs: tuple[str, ...]
    sweep: Sweep | None = None

    def settings(self, defaults: Mapping[str, object]) -> list[dict[str, object]]:
        """The hyperparameters of each run of an algorithm with these defaults, as far as the target sets them."""
        if self.sweep is None:
            return [{}]
        if self.sweep.parameter not in defaults:
            return []
        return [{self.sweep.parameter: value, self.sweep.fixed[0]: self.sweep.fixed[1]} for value in self.sweep.values]


def _table(number: int) -> Target:
    """The environments of a table, the discrete-reward ones first, in the paper's order."""
    rows = [environment for environment in ENVIRONMENTS.values() if environment.table == number]
    return Target(f"table{number}", (*(row.discrete for row in rows), *(row.continuous for row in rows)))


# Those that consist of runs; the sweeps are Figure 3.
TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        _table(1),
        _table(2),
        Target(
            "sensitivity-samples",
            ("Ant-v5",),
            Sweep("n_samples", (10, 20, 50, 100), chosen=N_SAMPLES, fixed=("sigma", SIGMA)),
        ),
        Target(
            "sensitivity-sigma",
            ("Ant-v5",),
            Sweep("sigma", (0.001, 0.01, 0.1, 0.2, 0.5), chosen=SIGMA, fixed=("n_samples", 10)),
        ),
    )
}
SWEEPS = tuple(target.sweep for target in TARGETS.values() if target.sweep)
# The hyperparameters that tell the runs of one algorithm apart in the paper.
SWEPT = tuple(sorted((sweep.parameter for sweep in SWEEPS), reverse=True))
