import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softdpg.theory.quadrature import gauss_legendre_panels, smooth
from softdpg.theory.toy import Toy, soft_dpg_on_the_toy


def test_values_by_hand():
    toy = Toy(epsilon=0.1, gamma=0.9)
    assert toy.value(0.5, 0.0) == pytest.approx(10)
    assert toy.value(0.0, 0.0) == 0
    np.testing.assert_allclose(toy.critic([0.0, 0.55, 0.61], 0.5, 0.0), [9, 10, 9])
    # sigma = epsilon at the centre: Pr(|w| < 1) = 0.6826894921370859
    assert toy.value(0.5, 0.1) == pytest.approx(6.826894921370859)


@given(policy=st.floats(-1, 1), sigma=st.floats(0.05, 1), epsilon=st.floats(0.01, 1.4), clipped=st.booleans())
@settings(max_examples=50)
def test_smoothed_reward_is_the_expectation(policy, sigma, epsilon, clipped):
    toy = Toy(epsilon, clipped=clipped)
    rule = gauss_legendre_panels(toy.jumps(policy, sigma))

    def reward(actions):
        return toy.reward(np.clip(actions[..., 0], -1, 1) if clipped else actions[..., 0])

    assert toy.smoothed_reward(policy, sigma) == pytest.approx(
        float(smooth(reward, np.array([policy]), sigma, rule)), abs=1e-10
    )


@given(policy=st.floats(-1, 1), sigma=st.floats(0.1, 1), epsilon=st.floats(0.05, 0.9), clipped=st.booleans())
@settings(max_examples=50)
def test_soft_dpg_where_the_critic_jumps(policy, sigma, epsilon, clipped):
    check = soft_dpg_on_the_toy(Toy(epsilon, clipped=clipped), policy, sigma)
    assert check.holds, check
    assert check.measured == pytest.approx(abs(Toy(epsilon, clipped=clipped).gradient(policy, sigma)), abs=1e-3)


def test_clipping_matters_only_beyond_one_half():
    policies, sigma = np.linspace(-1, 1, 21), 0.3
    for epsilon, same in ((0.1, True), (0.5, True), (0.6, False)):
        clipped, free = (Toy(epsilon, clipped=c).smoothed_reward(policies, sigma) for c in (True, False))
        assert np.allclose(clipped, free, atol=1e-15) is same
