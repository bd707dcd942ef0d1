"""What the throughput benchmark compares: every agent with the same batch, layers, buffer and environment."""

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import jax
import numpy as np

from benchmarks.throughput import RECIPE, SAMPLES, SOFT_TD3, TD3_256
from examples import soft_ddpg_plain as plain
from softdpg import DDPG, TD3, SoftDDPG, SoftTD3
from softdpg.algorithms.compilation import compiler_options

BATCH, LAYERS = 256, [400, 300]
COMMON = dict(
    learning_rate=1e-4, buffer_size=100_000, learning_starts=BATCH, batch_size=BATCH, tau=0.005, gamma=0.99, seed=0
)


class PlainSoftDDPG(SoftDDPG):
    """Algorithm 1 as ``examples/soft_ddpg_plain.py`` has it, on the same networks, buffer and loop."""

    def train(self, gradient_steps: int, batch_size: int) -> None:
        if not hasattr(self, "_plain_update"):
            self._plain_states = (
                plain.initial(self.policy.actor_state.params),
                plain.initial(self.policy.qf_state.params),
            )
            self._plain_update = jax.jit(self._update, compiler_options=compiler_options())
        for _ in range(gradient_steps):
            batch = self._sample_batch(batch_size)
            self._plain_states, self.key = self._plain_update(*self._plain_states, self.key, batch)
        actor_state = self.policy.actor_state.replace(params=self._plain_states[0].params)
        self.policy.__dict__.update(actor_state=actor_state)
        self._n_updates += gradient_steps

    def _update(self, actor: plain.State, critic: plain.State, key: jax.Array, batch: Any) -> Any:
        key, *keys = jax.random.split(key, 3)
        size, m = batch.actions.shape
        noise = (jax.random.normal(key, (self.n_samples, m, size)).swapaxes(1, 2) for key in keys)
        rows = plain.Batch(
            batch.observations,
            batch.actions,
            batch.rewards,
            batch.next_observations,
            batch.discounts * (1 - batch.dones),
        )
        rate = self.lr_schedule(1)
        networks = self.policy.actor_state.apply_fn, self._q
        actor, critic, _ = plain.update(*networks, actor, critic, rows, *noise, self.sigma, rate, rate, self.tau)
        return (actor, critic), key

    def _q(self, params: Any, s: jax.Array, a: jax.Array) -> jax.Array:
        flat = s.reshape(-1, s.shape[-1]), a.reshape(-1, a.shape[-1])
        return self.policy.qf_state.apply_fn(params, *flat).reshape(s.shape[:-1])


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
    return result | family()


def family() -> dict[str, Callable[[str], Any]]:
    """TD3 and Soft TD3 beside SBX's TD3 and SAC, with the layers that SBX's have by default and an update a step."""
    common = COMMON | {"learning_rate": 1e-3}
    costliest = dict(n_samples=8, policy_delay=1, n_steps=1, actor_gradient="smoothed")

    def soft(settings: dict[str, Any], **policy_kwargs: Any) -> Callable[[str], Any]:
        kwargs = {"net_arch": [256, 256], **policy_kwargs}
        every_step = dict(train_freq=1, gradient_steps=1)
        return lambda env: SoftTD3("MlpPolicy", env, policy_kwargs=kwargs, **{**common, **every_step, **settings})

    def sbx(name: str) -> Callable[[str], Any]:
        import sbx

        return lambda env: getattr(sbx, name)("MlpPolicy", env, **COMMON)

    return {
        TD3_256: lambda env: TD3("MlpPolicy", env, policy_kwargs={"net_arch": [256, 256]}, **common),
        SOFT_TD3: soft(costliest),
        f"{SOFT_TD3} no layer norm": soft(costliest, layer_norm=False),
        RECIPE: soft({}),
        "SBX SAC": sbx("SAC"),
        "SBX TD3": sbx("TD3"),
    }


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
