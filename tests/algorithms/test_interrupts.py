"""Whatever interrupts learning, and whenever, the model is whole: it predicts, saves and goes on learning."""

import signal
import traceback
from itertools import cycle

import gymnasium as gym
import jax
import numpy as np
import pytest

from softdpg import DDPG, TD3, SoftDDPG, SoftTD3

SMALL = dict(learning_starts=10, batch_size=16, buffer_size=1_000, policy_kwargs=dict(net_arch=[16, 16]))
ONE_BY_ONE = dict(train_freq=1, gradient_steps=1, n_steps=1)
OBSERVATIONS = np.zeros((2, 3), np.float32)


def make(algorithm, **kwargs):
    soft = dict(n_samples=4) if algorithm in (SoftDDPG, SoftTD3) else {}
    # Gymnasium's checker, interrupted in its first reset, breaks the environment that it wraps.
    env = gym.make("Pendulum-v1", disable_env_checker=True)
    return algorithm("MlpPolicy", env, **SMALL | ONE_BY_ONE | soft | kwargs)


def assert_whole(model, path):
    for leaf in jax.tree.leaves((model.get_parameters(), model.key)):
        assert np.isfinite(leaf).all()
    actions = model.predict(OBSERVATIONS)[0]
    model.save(path)
    np.testing.assert_array_equal(type(model).load(path).predict(OBSERVATIONS)[0], actions)
    updates = model._n_updates
    model.learn(15)
    assert model._n_updates > updates


def learn_until_interrupted(model):
    try:
        model.learn(1_000_000)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def is_interrupt(error):
    return "KeyboardInterrupt" in repr(error)


def test_fifty_models_interrupted_at_random_moments(tmp_path):
    """Ctrl-C is a signal: a timer sends the same one, at a moment that nothing in the model knows of."""
    rng = np.random.default_rng()
    algorithms = cycle([DDPG, SoftDDPG, TD3, SoftTD3])
    for algorithm in (DDPG, SoftDDPG, TD3, SoftTD3):
        make(algorithm, gradient_steps=4).learn(15)  # compiles, so that the interrupts do not all fall there
    previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
    lost = []
    try:
        for number in range(50):
            model = make(next(algorithms), gradient_steps=4, seed=number)
            moment = float(rng.uniform(1e-3, 0.2))
            # And again each second: Python drops an interrupt that falls into a finaliser.
            signal.setitimer(signal.ITIMER_REAL, moment, 1.0)
            # JAX makes a ValueError of one that falls between two of its own lines.
            with pytest.raises((KeyboardInterrupt, ValueError), check=is_interrupt):
                learn_until_interrupted(model)
            try:
                assert_whole(model, tmp_path / "model")
            except Exception:
                lost.append(f"{type(model).__name__}, seed {number}, after {moment:.4f} s: {traceback.format_exc()}")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert not lost, "\n".join(lost)


@pytest.mark.parametrize("algorithm", [DDPG, SoftDDPG, TD3, SoftTD3])
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_interrupt_between_two_updates(algorithm, error, tmp_path, monkeypatch):
    model = make(algorithm).learn(15)
    updates, sample, calls = model._n_updates, model._sample_batch, []

    def interrupt(batch_size):
        calls.append(batch_size)
        if len(calls) == 2:
            raise error
        return sample(batch_size)

    monkeypatch.setattr(model, "_sample_batch", interrupt)
    with pytest.raises(error):
        model.train(gradient_steps=2, batch_size=16)
    monkeypatch.undo()
    assert model._n_updates == updates + 1  # the first is done, and counted
    assert_whole(model, tmp_path / "model")


class Fails(gym.Wrapper):
    def __init__(self, at):
        super().__init__(gym.make("Pendulum-v1"))
        self.at, self.steps = at, 0

    def step(self, action):
        self.steps += 1
        if self.steps == self.at:
            raise OSError("the robot is gone")
        return self.env.step(action)


def test_exceptions_of_environment_buffer_and_callback(tmp_path, monkeypatch):
    model = make(SoftDDPG, gradient_steps=4)
    model.set_env(Fails(at=20))
    with pytest.raises(OSError, match="the robot is gone"):
        model.learn(100)
    assert_whole(model, tmp_path / "model")

    def stop(local, _):
        if model.num_timesteps == 20:
            raise RuntimeError("enough")
        return True

    with pytest.raises(RuntimeError, match="enough"):
        model.learn(100, callback=stop)
    assert_whole(model, tmp_path / "model")

    def full(*args, **kwargs):
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(model.replay_buffer, "add", full)
        with pytest.raises(OSError, match="no space left"):
            model.learn(100)
    assert_whole(model, tmp_path / "model")


def test_what_the_caller_holds_outlives_learning():
    model = make(SoftTD3)
    key, params = model.key, model.policy.actor_state.params
    copies = jax.tree.map(np.array, (key, params))
    model.learn(30)
    jax.tree.map(np.testing.assert_array_equal, (key, params), copies)
    assert not np.array_equal(key, model.key)
