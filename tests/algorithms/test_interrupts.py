"""A model stays whole wherever learning is interrupted: it predicts, is saved and continues to learn."""

import sys
import traceback
from contextlib import contextmanager
from pathlib import Path

import gymnasium as gym
import jax
import numpy as np
import pytest
import stable_baselines3
from small import FAMILY, OBSERVATIONS, make

import softdpg
from softdpg import DDPG, TD3, SoftDDPG, SoftTD3

INTERRUPTED = [  # where an interrupt may fall: the files that learning runs through
    *(str(path) for name in ("algorithms", "replay") for path in (Path(softdpg.__file__).parent / name).glob("*.py")),
    str(Path(stable_baselines3.__file__).parent / "common" / "off_policy_algorithm.py"),
]


def assert_whole(model, path):
    for leaf in jax.tree.leaves((model.get_parameters(), model.key)):
        assert np.isfinite(leaf).all()
    actions = model.predict(OBSERVATIONS)[0]
    model.save(path)
    np.testing.assert_array_equal(type(model).load(path).predict(OBSERVATIONS)[0], actions)
    updates = model._n_updates
    model.learn(15)
    assert model._n_updates > updates


@contextmanager
def at_each_line(do):
    """Call ``do`` with the (file, line) of each line of :data:`INTERRUPTED` before Python executes it."""

    def in_function(frame, event, argument):
        if event == "line":
            do((frame.f_code.co_filename, frame.f_lineno))
        return in_function

    previous = sys.gettrace()
    sys.settrace(lambda frame, *_: in_function if frame.f_code.co_filename in INTERRUPTED else None)
    try:
        yield
    finally:
        sys.settrace(previous)


def lines_of_learning(algorithm, gradient_steps):
    """Every line that learning executes, in the order of their first execution."""
    make(algorithm, gradient_steps=gradient_steps).learn(15)  # compiles
    lines = {}
    model = make(algorithm, gradient_steps=gradient_steps)
    with at_each_line(lines.setdefault):
        model.learn(15)
    return list(lines)


def assert_whole_after_an_interrupt_at(lines, algorithm, gradient_steps, path):
    """Ctrl-C raises ``KeyboardInterrupt`` between two lines. Raise it at each of ``lines`` in turn."""
    lost = []
    for interrupted in lines:
        model = make(algorithm, gradient_steps=gradient_steps)

        def interrupt(line, interrupted=interrupted):
            if line == interrupted:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt), at_each_line(interrupt):
            model.learn(15)
        try:
            assert_whole(model, path)
        except Exception:
            lost.append(f"{algorithm.__name__} at {interrupted}: {traceback.format_exc()}")
    assert not lost, "\n".join(lost)


def test_interrupt_at_some_lines_of_learning(tmp_path):
    lines = lines_of_learning(DDPG, 1)
    assert any(name.endswith("off_policy_algorithm.py") for name, _ in lines)
    assert_whole_after_an_interrupt_at(lines[:: len(lines) // 8], DDPG, 1, tmp_path / "model")


@pytest.mark.extended
@pytest.mark.parametrize(("number", "algorithm"), list(enumerate(FAMILY)))
def test_interrupt_at_every_line_of_learning(number, algorithm, tmp_path):
    """The four algorithms share most lines, so each takes a quarter of them."""
    lines = lines_of_learning(algorithm, 4)
    assert_whole_after_an_interrupt_at(lines[number :: len(FAMILY)], algorithm, 4, tmp_path / "model")


@pytest.mark.parametrize(
    "algorithm", [SoftTD3, *(pytest.param(other, marks=pytest.mark.extended) for other in (DDPG, SoftDDPG, TD3))]
)
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
    model = make(SoftDDPG)
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
