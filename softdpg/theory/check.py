"""The outcome of checking one statement on one problem."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

ROUNDING = 1e-11  # relative; linear systems with condition number 1 / (1 - gamma) lose a few digits


@dataclass(frozen=True)
class Check:
    """A statement of the paper, evaluated.

    :param statement: what is claimed, in words
    :param reference: where the paper says so
    :param family: family of problems: ``finite``, ``lqr``, ``toy`` or ``function``
    :param problem: the problem it was evaluated on
    :param sigma: smoothing parameter; 0 where none enters
    :param kind: ``inequality`` (measured <= claimed), ``equality`` (measured = claimed), ``limit`` (an equality whose
        measured side is extrapolated to sigma = 0), ``distinct`` (measured > 0: two functions differ)
    :param claimed: the paper's side; for vectors its Euclidean norm
    :param measured: the side computed independently; for vectors its Euclidean norm
    :param error: by how much the statement is missed: the excess of an inequality, the largest difference of an
        equality, what a difference lacks to exceed its noise
    :param tolerance: how much of that is numerical, estimated by the rules of lower order
    :param as_written: True for the paper's own form, False for a corrected or sharper one
    """

    statement: str
    reference: str
    family: str
    problem: str
    sigma: float
    kind: str
    claimed: float
    measured: float
    error: float
    tolerance: float
    as_written: bool = True

    @property
    def holds(self) -> bool:
        """Whether the statement holds up to the numerical tolerance. NaN never holds."""
        return bool(self.error <= self.tolerance)

    @property
    def ratio(self) -> float:
        """Measured over claimed: at most 1 for an inequality that holds, 1 for an equality, NaN for 0 / 0."""
        return self.measured / self.claimed if self.claimed != 0 else float("nan")

    def record(self) -> dict[str, Any]:
        """Plain values for JSON; what is not finite becomes None."""
        values = asdict(self) | {"ratio": self.ratio, "holds": self.holds}
        return {k: None if isinstance(v, float) and not np.isfinite(v) else v for k, v in values.items()}


@dataclass(frozen=True)
class About:
    """Which statement, and on which problem: the descriptive half of a ``Check``."""

    statement: str
    reference: str
    family: str
    problem: str
    sigma: float = 0.0
    as_written: bool = True

    def inequality(self, claimed: float, measured: float, tolerance: float = 0.0) -> Check:
        """Check measured <= claimed."""
        slack = tolerance + ROUNDING * max(abs(claimed), abs(measured))
        return self._check("inequality", claimed, measured, measured - claimed, slack)

    def equality(
        self,
        claimed: ArrayLike,
        measured: ArrayLike,
        tolerance: float = 0.0,
        scale: float = 0.0,
        kind: str = "equality",
    ) -> Check:
        """Check claimed = measured, elementwise. ``scale``: size of the terms that were subtracted on the way."""
        claimed, measured = np.asarray(claimed), np.asarray(measured)
        # A number keeps its sign; a vector is shown by its norm.
        shown = [float(x) if x.ndim == 0 else float(np.linalg.norm(x)) for x in (claimed, measured)]
        slack = tolerance + ROUNDING * max(abs(shown[0]), abs(shown[1]), scale)
        return self._check(kind, shown[0], shown[1], largest(claimed - measured), slack)

    def distinct(self, difference: float, tolerance: float, scale: float) -> Check:
        """Check that a difference is larger than its numerical error."""
        noise = tolerance + ROUNDING * scale
        return self._check("distinct", 0.0, difference, noise - difference, 0.0)

    def _check(self, kind: str, claimed: float, measured: float, error: float, tolerance: float) -> Check:
        return Check(
            self.statement, self.reference, self.family, self.problem, float(self.sigma), kind,
            float(claimed), float(measured), float(error), float(tolerance), self.as_written,
        )  # fmt: skip


def largest(x: np.ndarray) -> float:
    """Largest absolute entry."""
    return float(np.max(np.abs(x)))
