"""CPU seconds of a run: what counts as training, as evaluation and as compilation, and over several sessions."""

import threading
import time
from types import SimpleNamespace

import gymnasium as gym
import jax
import numpy as np
import pytest
import strange_envs
from processes import tiny_config

from softdpg.runs import session
from softdpg.runs.directory import RunDirectory, parse_timings
from softdpg.runs.session import CpuClock
from softdpg.runs.training import train

EPISODE = 10


class Ticking:
    """A clock that stands still unless a test advances it."""

    now = 100.0

    def process_time(self):
        return self.now


@pytest.fixture
def ticking(monkeypatch):
    clock = Ticking()
    monkeypatch.setattr(session, "time", SimpleNamespace(process_time=clock.process_time, monotonic=time.monotonic))
    monkeypatch.setattr(Costly, "clock", clock)
    return clock


class Costly(strange_envs.Strange):
    """Every step takes one second of CPU time."""

    clock = Ticking()

    def step(self, action):
        self.clock.now += 1
        return super().step(action)


gym.register("Costly-v0", Costly, kwargs={"episode": EPISODE})


def compile_anew():
    """Compile a function that JAX has never seen."""
    return jax.jit(lambda x: x + 1)(1.0)


def test_each_second_is_counted_once(ticking):
    clock = CpuClock({})
    ticking.now += 4
    clock.lap()
    assert clock.seconds == {"train": 4, "evaluate": 0, "compile": 0}
    ticking.now += 2  # training too, as it comes before the evaluation
    with clock.evaluation():
        ticking.now += 10
    assert clock.seconds == {"train": 6, "evaluate": 10, "compile": 0}
    compile_anew()
    ticking.now += 5
    clock.lap()
    assert clock.seconds == {"train": 6, "evaluate": 10, "compile": 5}
    ticking.now += 3
    clock.lap()  # nothing was compiled since the last lap
    assert clock.seconds == {"train": 9, "evaluate": 10, "compile": 5}


def test_an_evaluation_counts_as_a_whole_even_if_it_compiles_or_fails(ticking):
    clock = CpuClock({})

    def failing():
        with clock.evaluation():
            compile_anew()
            ticking.now += 5
            raise ValueError("diverged")

    with pytest.raises(ValueError, match="diverged"):
        failing()
    clock.lap()
    assert clock.seconds == {"train": 0, "evaluate": 5, "compile": 0}


def test_a_later_session_continues_the_earlier_ones(ticking):
    clock = CpuClock({"train": 10.0, "evaluate": 2.5, "compile": 1.0})
    ticking.now += 4
    clock.lap()
    assert clock.seconds == {"train": 14.0, "evaluate": 2.5, "compile": 1.0}


def test_threads_count():
    def burn():
        end = time.thread_time() + 0.05
        while time.thread_time() < end:
            pass

    began = time.process_time()
    clock = CpuClock({})
    thread = threading.Thread(target=burn)
    thread.start()
    thread.join()
    clock.lap()
    assert 0.05 <= sum(clock.seconds.values()) <= time.process_time() - began


def test_the_table_by_hand(tmp_path):
    directory = RunDirectory(tmp_path)
    directory.create_tables(episodes=2)
    directory.append_evaluation(1_000, np.array([1.0, 2.0]), {"train": 1.23456, "evaluate": 0.5, "compile": 7.0})
    directory.append_evaluation(2_000, np.array([0.1, 0.1]), {"compile": 7.0, "evaluate": 0.75, "train": 2.0})
    assert directory.evaluations.read_text() == (
        "step,mean,std,return_1,return_2\n1000,1.5,0.5,1.0,2.0\n2000,0.1,0.0,0.1,0.1\n"
    )
    text = directory.timings.read_text()
    assert text == "step,train,evaluate,compile\n1000,1.235,0.500,7.000\n2000,2.000,0.750,7.000\n"
    steps, training, evaluation, compilation = map(list, parse_timings(text))
    assert (steps, training, evaluation, compilation) == ([1000, 2000], [1.235, 2.0], [0.5, 0.75], [7.0, 7.0])


def test_a_run_and_its_continuation(tmp_path, ticking):
    """A second for each step: 20 in an evaluation of two episodes, and 50 of training between two evaluations."""
    settings = dict(learning_starts=20, evaluate_every=50, checkpoint_every=50)
    assert train(tiny_config("Costly-v0", "ddpg", steps=100, **settings), tmp_path, keep_buffer=True) == 0
    first = RunDirectory(tmp_path).read_timings()
    assert first.steps.tolist() == [50, 100]
    ticking.now += 1000  # what happens between two sessions does not count
    assert train(tiny_config("Costly-v0", "ddpg", steps=150, **settings), tmp_path) == 0
    whole = RunDirectory(tmp_path).read_timings()
    assert whole.steps.tolist() == [50, 100, 150]
    assert whole.evaluate.tolist() == [20, 40, 60]
    assert (whole.train + whole.compile).tolist() == [50, 100, 150]
    for before, after in zip(first[1:], whole[1:], strict=True):
        assert before.tolist() == after[:2].tolist()
