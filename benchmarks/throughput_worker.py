"""Measure throughput or memory in a process of its own: take and print JSON.

Every algorithm trains with the same batch size, layers, buffer and environment.
"""

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import jax
import numpy as np

from benchmarks.throughput import LIMIT, RECIPE, SAMPLES, SOFT_TD3, TD3_256
from examples import soft_ddpg_plain as plain
from softdpg import DDPG, TD3, SoftDDPG, SoftTD3
from softdpg.algorithms.update import compiler_options

BATCH, LAYERS = 256, [400, 300]
COMMON = dict(
    learning_rate=1e-4, buffer_size=100_000, learning_starts=BATCH, batch_size=BATCH, tau=0.005, gamma=0.99, seed=0
)


class PlainSoftDDPG(SoftDDPG):
    """Algorithm 1 of ``examples/soft_ddpg_plain.py`` with the networks, buffer and loop of the package."""

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


def algorithms(samples: tuple[int, ...] = SAMPLES) -> dict[str, Callable[[str], Any]]:
    """Return constructors by name. Each takes an environment id."""

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
        # Pairs need an even number: the centered estimator takes at least 2 samples.
        result[soft_name("centered", max(n, 2))] = soft("centered", max(n, 2))
    result["Algorithm 1 plain N=50"] = lambda env: PlainSoftDDPG("MlpPolicy", env, n_samples=50, **COMMON)
    result["SBX DDPG"] = sbx_ddpg
    result["SB3 DDPG"] = sb3_ddpg
    return result | family()


def family() -> dict[str, Callable[[str], Any]]:
    """Return TD3 and Soft TD3 beside SBX's TD3 and SAC, with SBX's default layers and one update per step."""
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
    """Return the exploration noise that the classes of softdpg have by default."""
    from stable_baselines3.common.noise import NormalActionNoise

    m = gym.make(env).action_space.shape[0]
    return NormalActionNoise(np.zeros(m), np.full(m, 0.1))


def matrix_products(d: int, m: int) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return the shapes of the matrix products in one update of DDPG: d observations, m actions, BATCH rows."""
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


def measure_throughput(
    env: str, threads: str, samples: list[int], only: list[str], rounds: int, seconds: float
) -> dict[str, Any]:
    """Measure the steps per second of each algorithm in each round.

    :param env: environment id
    :param threads: ``one`` or ``all``
    :param samples: numbers of samples N of Soft DDPG
    :param only: measure algorithms whose name contains one of these strings; empty for all
    :param rounds: turns of each algorithm
    :param seconds: length of a turn
    :return: ``{"rates": {name: [rounds]}, "sizes": [d, m]}``
    """
    stretches: dict[str, Callable[[int], None]] = {}
    for name, make in algorithms(tuple(samples)).items():
        if only and not any(part in name for part in only):
            continue
        model = make(env)
        model.learn(BATCH + 3)  # fill the buffer for a batch, compile
        stretches[name] = partial(stretch, model)
        d, m = model.observation_space.shape[0], model.action_space.shape[0]
    print("ready", flush=True)
    input()
    if threads == "one":
        pin()
    stretches[LIMIT] = products(matrix_products(d, m))
    steps = {name: calibrate(run, seconds) for name, run in stretches.items()}
    rates: dict[str, list[float]] = {name: [] for name in stretches}
    rng = np.random.default_rng(0)
    for _ in range(rounds):
        # Another order each time: after NumPy or torch their threads still spin.
        for name in rng.permutation(list(stretches)):
            start = time.perf_counter()
            stretches[name](steps[name])
            rates[name].append(steps[name] / (time.perf_counter() - start))
    return {"rates": rates, "sizes": [d, m]}


def pin() -> None:
    """Keep this process and the threads of its libraries on one core."""
    if hasattr(os, "sched_setaffinity"):
        core = max(os.sched_getaffinity(0))
        for thread in os.listdir("/proc/self/task"):
            os.sched_setaffinity(int(thread), {core})


def stretch(model: Any, steps: int) -> None:
    """Train, and wait for the last update: JAX may still compute it when ``learn`` returns."""
    model.learn(steps, reset_num_timesteps=False)
    jax.block_until_ready(vars(model.policy).get("actor_state"))


def calibrate(run: Callable[[int], None], seconds: float) -> int:
    """Return the number of steps that take about ``seconds``."""
    start = time.perf_counter()
    run(5)
    return max(3, round(5 * seconds / (time.perf_counter() - start)))


def products(shapes: list[tuple[tuple[int, int], tuple[int, int]]]) -> Any:
    """Return a function that computes only the matrix products of n updates, each with the faster library."""
    rng = np.random.default_rng(0)
    product = jax.jit(lambda a, b: a @ b)
    jobs = []
    for left, right in shapes:
        a, b = rng.normal(size=left).astype(np.float32), rng.normal(size=right).astype(np.float32)
        a_jax, b_jax, result = jax.numpy.asarray(a), jax.numpy.asarray(b), np.empty((left[0], right[1]), np.float32)
        candidates = [
            lambda a=a, b=b, result=result: np.matmul(a, b, out=result),
            lambda a=a_jax, b=b_jax: product(a, b).block_until_ready(),
        ]
        jobs.append(min(candidates, key=lambda job: min(timed(job) for _ in range(20))))

    def run(updates: int) -> None:
        for _ in range(updates):
            for job in jobs:
                job()

    return run


def timed(job: Any) -> float:
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def measure_memory(env: str, threads: str, name: str) -> dict[str, Any]:
    """Measure the peak memory of training with a full buffer of a million transitions."""
    COMMON["buffer_size"] = 1_000_000
    model = algorithms()[name](env)
    arrays = [array for array in vars(model.replay_buffer).values() if isinstance(array, np.ndarray)]
    arrays = [array for array in arrays if array.base is None]  # views of others do not count
    for array in arrays:
        array.fill(0)  # a full buffer has written every page
    model.learn(BATCH + 3)
    return {
        "bytes_per_transition": sum(array.nbytes for array in arrays) / 1_000_000,
        "peak_rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


if __name__ == "__main__":
    work = json.loads(sys.argv[1])
    measure = {"throughput": measure_throughput, "memory": measure_memory}[work.pop("what")]
    print(json.dumps(measure(**work)))
