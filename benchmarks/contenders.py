"""What the throughput benchmark compares: every agent with the same batch, layers, buffer and environment."""

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

from benchmarks.plain import compiled_plain_update
from benchmarks.throughput import SAMPLES
from softdpg import DDPG, SoftDDPG

BATCH, LAYERS = 256, [400, 300]
COMMON = dict(
    learning_rate=1e-4, buffer_size=100_000, learning_starts=BATCH, batch_size=BATCH, tau=0.005, gamma=0.99, seed=0
)


class PlainSoftDDPG(SoftDDPG):
    """Algorithm 1 as it is written: states repeated N times, on the same networks, buffer and loop."""

    def train(self, gradient_steps: int, batch_size: int) -> None:
        rate = self.lr_schedule(1)
        for _ in range(gradient_steps):
            batch = self._sample_batch(batch_size)
            self.policy.actor_state, self.policy.qf_state, self.key, self._metrics = compiled_plain_update()(
                self.sigma,
                self.n_samples,
                self.policy.actor_state,
                self.policy.qf_state,
                self.key,
                batch,
                rate,
                rate,
                self.tau,
            )
        self._n_updates += gradient_steps


def soft_name(estimator: str, n_samples: int) -> str:
    return f"SoftDDPG {estimator} N={n_samples}"


def agents(samples: tuple[int, ...] = SAMPLES) -> dict[str, Callable[[str], Any]]:
    """Constructors by name: each takes an environment id."""

    def soft(estimator: str, n_samples: int) -> Callable[[str], Any]:
        return lambda env: SoftDDPG("MlpPolicy", env, estimator=estimator, n_samples=n_samples, **COMMON)

    def sbx_ddpg(env: str) -> Any:
        import sbx

        return sbx.DDPG("MlpPolicy", env, policy_kwargs=dict(net_arch=LAYERS), action_noise=noise(env), **COMMON)

    def sb3_ddpg(env: str) -> Any:
        import stable_baselines3

        kwargs = dict(net_arch=LAYERS)
        return stable_baselines3.DDPG(
            "MlpPolicy", env, policy_kwargs=kwargs, action_noise=noise(env), device="cpu", **COMMON
        )

    result: dict[str, Callable[[str], Any]] = {"DDPG": lambda env: DDPG("MlpPolicy", env, **COMMON)}
    for n in samples:
        result[soft_name("paper", n)] = soft("paper", n)
        # Pairs need an even number: the least of the centered estimator is 2.
        result[soft_name("centered", max(n, 2))] = soft("centered", max(n, 2))
    result["Algorithm 1 plain N=50"] = lambda env: PlainSoftDDPG("MlpPolicy", env, n_samples=50, **COMMON)
    result["SBX DDPG"] = sbx_ddpg
    result["SB3 DDPG"] = sb3_ddpg
    return result


def noise(env: str) -> Any:
    """The exploration noise that our classes have by default."""
    from stable_baselines3.common.noise import NormalActionNoise

    m = gym.make(env).action_space.shape[0]
    return NormalActionNoise(np.zeros(m), np.full(m, 0.1))


def matrix_products(d: int, m: int) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Shapes of the matrix products in one update of our DDPG: d observations, m actions, BATCH rows."""
    b, (h1, h2) = BATCH, LAYERS
    state, hidden = [((b, d), (d, h1))], [((b, h1), (h1, h2))]
    actor = state + hidden + [((b, h2), (h2, m))]
    critic = state + hidden + [((b, m), (m, h2)), ((b, h2), (h2, 1))]
    # Kernels of both hidden layers, and the gradient that reaches the first layer
    backward = [((d, b), (b, h1)), ((h1, b), (b, h2)), ((b, h2), (h2, h1))]
    critic_backward = [((h2, b), (b, 1)), ((m, b), (b, h2)), *backward]
    action_gradient = [((b, h2), (h2, m))]
    actor_backward = [((h2, b), (b, m)), ((b, m), (m, h2)), *backward]
    return 2 * actor + 3 * critic + critic_backward + action_gradient + actor_backward
