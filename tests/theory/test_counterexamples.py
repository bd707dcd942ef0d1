import numpy as np
import pytest

from softdpg.theory import counterexamples
from softdpg.theory.counterexamples import COUNTEREXAMPLES


@pytest.mark.parametrize("counterexample", COUNTEREXAMPLES, ids=lambda f: f.__name__)
def test_fails_as_written_and_holds_corrected(counterexample):
    wrong, right = counterexample()
    assert not wrong.holds, wrong
    assert right.holds, right


def test_simulation_lemma_is_off_by_two():
    """2 (1 - gamma) / (1 - gamma + gamma leak) -> 2."""
    wrong, right = counterexamples.simulation_lemma_signed(gamma=0.5, leak=1e-4)
    assert wrong.ratio == pytest.approx(2 * 0.5 / (0.5 + 0.5e-4))
    assert right.ratio == pytest.approx(0.5 / (0.5 + 0.5e-4))


def test_value_bound_is_off_by_twice_the_mean_of_the_noise():
    wrong, _ = counterexamples.value_error_bound_signed(sigma=1e-5)
    assert wrong.ratio == pytest.approx(2 * np.sqrt(2 / np.pi), rel=1e-3)


def test_missing_factor_is_one_over_one_minus_gamma():
    assert counterexamples.objective_under_visitation()[0].ratio == pytest.approx(10)
    assert counterexamples.theorem_with_a_distribution()[0].ratio == pytest.approx(10)


def test_clipped_score_by_hand():
    wrong, _ = counterexamples.clipped_score(sigma=0.2, gamma=0.99)
    assert wrong.claimed == pytest.approx(-100 / (0.2 * np.sqrt(2 * np.pi)))
    assert wrong.measured == 0


def test_gradient_of_the_written_objective_can_point_backwards():
    assert counterexamples.objective_under_visitation_turns()[0].measured < -0.9
