"""The outcome of checking one statement on one problem, and the tolerance of the comparison.

Both sides of a statement are computed in float64, so a statement that holds exactly can be missed by a little. How
little depends on the numbers that the computation adds and subtracts, not on the difference that remains: V and V_sigma
can agree to ten digits and still carry rounding errors of the size of V. A tolerance is therefore the sum of two
errors, and neither is a multiple of the difference being measured.

**Error of the method.** A quadrature is compared with one of lower order, a finite difference with one of twice the
step, an extrapolated limit with the previous extrapolation. The difference estimates the error.

**Rounding.** ``rounding(size, operations, condition)`` = machine epsilon * operations * condition * size, where

- ``size`` bounds the numbers that are added and subtracted: V_max = R_max / (1 - gamma) for the values of a finite
  problem, the same formula with absolute values of its terms for linear-quadratic control;
- ``operations`` counts the roundings that one result inherits:

  | computation | operations | why |
  | --- | --- | --- |
  | a formula: products, sine, tanh | 32 (``FORMULA``) | a sine inherits the roundings of its argument, here below 10 |
  | a sum of k terms, as in a quadrature | 4 sqrt(k), at most k | roundings of both signs partly cancel |
  | a linear system of n unknowns | 6 n | 3 n in the elimination, and entries can double on the way |

- ``condition`` is the factor by which the computation amplifies a relative error of its inputs:

  | computation | condition | why |
  | --- | --- | --- |
  | sums and formulas | 1 | ``size`` bounds the terms, not the result, so cancellation is counted |
  | V = (I - gamma P)^-1 R | 2 / (1 - gamma) | the matrix has norm at most 1 + gamma, its inverse 1 / (1 - gamma) |
  | Lyapunov equation | norm of the inverse times size of the terms | computed: it grows as the loop loses stability |

Dividing by a small number divides the rounding, too: by sigma in the score form E[f w / sigma], by the step in a finite
difference. Each problem knows the rounding of its values and gradients (``value_rounding``, ``score_rounding``,
``gradient_rounding``); each statement adds what its own comparison contributes.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

EPSILON = float(np.finfo(np.float64).eps)
FORMULA = 32  # roundings in the formula for one number


def rounding(size: float, operations: float = FORMULA, condition: float = 1.0) -> float:
    """Bound the rounding error of a computation; the module's docstring derives the three factors.

    :param size: bound on the numbers that are added and subtracted
    :param operations: number of roundings that the result inherits
    :param condition: amplification of relative errors of the inputs
    """
    return EPSILON * operations * condition * size


def sum_operations(terms: int) -> float:
    """Count the roundings that a sum of ``terms`` numbers inherits."""
    return min(terms, 4 * np.sqrt(terms))


def solve_operations(unknowns: int) -> float:
    """Count the roundings that the solution of a linear system inherits."""
    return 6 * unknowns


@dataclass(frozen=True)
class Check:
    """A statement of the paper, evaluated.

    :param statement: what is claimed, in words
    :param reference: where the paper says so
    :param family: family of problems: ``finite``, ``lqr``, ``toy`` or ``function``
    :param problem: the problem it was evaluated on
    :param sigma: smoothing parameter; 0 if the statement has none
    :param kind: ``inequality`` (measured <= claimed), ``equality`` (measured = claimed), ``limit`` (an equality whose
        measured side is extrapolated to sigma = 0), ``distinct`` (measured > 0: two functions differ)
    :param claimed: the paper's side; for vectors its Euclidean norm
    :param measured: the side computed independently; for vectors its Euclidean norm
    :param error: by how much the statement is missed: the excess of an inequality, the largest difference of an
        equality, what a difference lacks to exceed its numerical error
    :param tolerance: bound on the numerical error
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
        """Tell whether the statement holds up to the numerical tolerance. NaN never holds."""
        return bool(self.error <= self.tolerance)

    @property
    def ratio(self) -> float:
        """Divide measured by claimed: at most 1 for an inequality that holds, 1 for an equality, NaN for 0 / 0."""
        return self.measured / self.claimed if self.claimed != 0 else float("nan")

    def record(self) -> dict[str, Any]:
        """Return plain values for JSON. NaN and infinity become None."""
        values = asdict(self) | {"ratio": self.ratio, "holds": self.holds}
        return {k: None if isinstance(v, float) and not np.isfinite(v) else v for k, v in values.items()}


@dataclass(frozen=True)
class About:
    """Name a statement and a problem: the descriptive half of a ``Check``. The methods compare the two sides.

    Each adds the rounding of the last formula on either side to the tolerance that it is given.
    """

    statement: str
    reference: str
    family: str
    problem: str
    sigma: float = 0.0
    as_written: bool = True

    def inequality(self, claimed: float, measured: float, tolerance: float = 0.0) -> Check:
        """Check measured <= claimed.

        :param claimed: the bound
        :param measured: the number that it bounds
        :param tolerance: bound on the numerical error of both sides
        """
        tolerance += rounding(max(abs(claimed), abs(measured)))
        return self._check("inequality", claimed, measured, measured - claimed, tolerance)

    def equality(
        self, claimed: ArrayLike, measured: ArrayLike, tolerance: float = 0.0, kind: str = "equality"
    ) -> Check:
        """Check claimed = measured, elementwise.

        :param claimed: a number or a vector
        :param measured: the same, computed independently
        :param tolerance: bound on the numerical error of both sides, in each element
        :param kind: ``equality`` or ``limit``
        """
        claimed, measured = np.asarray(claimed), np.asarray(measured)
        # A number keeps its sign; a vector is shown by its norm.
        shown = [float(x) if x.ndim == 0 else float(np.linalg.norm(x)) for x in (claimed, measured)]
        tolerance += rounding(max(largest(claimed), largest(measured)))
        return self._check(kind, shown[0], shown[1], largest(claimed - measured), tolerance)

    def distinct(self, difference: float, tolerance: float) -> Check:
        """Check that a difference is larger than its numerical error.

        :param difference: the largest difference between two functions
        :param tolerance: bound on its numerical error
        """
        return self._check("distinct", 0.0, difference, tolerance - difference, 0.0)

    def _check(self, kind: str, claimed: float, measured: float, error: float, tolerance: float) -> Check:
        return Check(
            self.statement, self.reference, self.family, self.problem, float(self.sigma), kind,
            float(claimed), float(measured), float(error), float(tolerance), self.as_written,
        )  # fmt: skip


def largest(x: np.ndarray) -> float:
    """Return the largest absolute entry."""
    return float(np.max(np.abs(x)))
