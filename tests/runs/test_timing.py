"""CPU seconds of a run: what counts as training, as evaluation and as compilation, and over several parts of it."""

import threading
import time

import gymnasium as gym
import jax
import pytest
import strange_envs
from processes import tiny_config

from softdpg.runs.directory import RunDirectory
from softdpg.runs.evaluations import parse_timings
from softdpg.runs.timing import CpuClock, TimingLog
from softdpg.runs.training import train

STEP, EPISODE = 0.002, 10


def burn(seconds):
    """Use so many CPU seconds, however long that takes."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def compile_anew():
    """Compile a function that JAX has never seen."""
    return jax.jit(lambda x: x + 1)(1.0)


class Burning(strange_envs.Strange):
    def step(self, action):
        burn(STEP)
        return super().step(action)


gym.register("Burning-v0", Burning, kwargs={"episode": EPISODE})


def test_each_second_is_counted_once():
    compile_anew()  # the backend is there
    began = time.process_time()
    clock = CpuClock({})
    burn(0.04)
    clock.lap()
    assert clock.seconds == {"train": pytest.approx(0.04, abs=0.02), "evaluate": 0, "compile": 0}
    burn(0.02)  # of training, too, as it comes before the evaluation
    with clock.evaluation():
        burn(0.1)
    assert clock.seconds == {
        "train": pytest.approx(0.06, abs=0.02),
        "evaluate": pytest.approx(0.1, abs=0.02),
        "compile": 0,
    }
    trained = clock.seconds["train"]
    compile_anew()
    burn(0.05)
    clock.lap()
    assert clock.seconds["train"] == trained
    assert clock.seconds["compile"] >= 0.05
    burn(0.03)
    clock.lap()  # nothing was compiled since the last lap
    assert clock.seconds["train"] == pytest.approx(trained + 0.03, abs=0.02)
    assert sum(clock.seconds.values()) == pytest.approx(time.process_time() - began, abs=0.01)


def test_waiting_costs_nothing_and_threads_do():
    clock = CpuClock({})
    time.sleep(0.2)
    clock.lap()
    assert clock.seconds["train"] < 0.05
    thread = threading.Thread(target=burn, args=(0.1,))
    thread.start()
    thread.join()
    clock.lap()
    assert clock.seconds["train"] == pytest.approx(0.1, abs=0.05)


def test_an_evaluation_counts_as_a_whole_even_if_it_compiles_or_fails():
    clock = CpuClock({})

    def failing():
        with clock.evaluation():
            compile_anew()
            burn(0.05)
            raise ValueError("diverged")

    with pytest.raises(ValueError, match="diverged"):
        failing()
    assert clock.seconds["evaluate"] > 0.05
    clock.lap()
    assert clock.seconds["compile"] == 0


def test_a_later_part_goes_on_from_the_earlier_ones():
    clock = CpuClock({"train": 10.0, "evaluate": 2.5})  # compilation is missing: nothing so far
    burn(0.04)
    clock.lap()
    assert clock.seconds == {"train": pytest.approx(10.04, abs=0.02), "evaluate": 2.5, "compile": 0}


def test_the_log_by_hand(tmp_path):
    log = TimingLog(tmp_path / "timings.csv")
    log.create(log.path)
    log.append(1_000, {"train": 1.23456, "evaluate": 0.5, "compile": 7.0})
    log.append(2_000, {"compile": 7.0, "evaluate": 0.75, "train": 2.0})
    text = log.path.read_text()
    assert text == "step,train,evaluate,compile\n1000,1.235,0.500,7.000\n2000,2.000,0.750,7.000\n"
    steps, training, evaluation, compilation = map(list, parse_timings(text))
    assert (steps, training, evaluation, compilation) == ([1000, 2000], [1.235, 2.0], [0.5, 0.75], [7.0, 7.0])


def test_a_run_and_its_continuation(tmp_path):
    """Every step burns 2 ms: 20 in an evaluation of two episodes, and those of training between two evaluations."""
    settings = dict(learning_starts=20, evaluate_every=50, checkpoint_every=50)
    jax.clear_caches()  # so that there is something to compile, whatever ran before
    began = time.process_time()
    assert train(tiny_config("Burning-v0", "ddpg", steps=100, **settings), tmp_path) == 0
    first = RunDirectory(tmp_path).read_timings()
    assert sum(seconds[-1] for seconds in first[1:]) <= time.process_time() - began
    assert first.steps.tolist() == [50, 100]
    assert first.compile[0] > 0
    assert first.compile[1] == first.compile[0]  # all was compiled before the first evaluation
    time.sleep(0.2)  # what happens between two parts is none of the run's
    burn(0.2)
    began = time.process_time()
    assert train(tiny_config("Burning-v0", "ddpg", steps=150, **settings), tmp_path) == 0
    whole = RunDirectory(tmp_path).read_timings()
    assert whole.steps.tolist() == [50, 100, 150]
    for before, after in zip(first[1:], whole[1:], strict=True):
        assert before.tolist() == after[:2].tolist()
    added = sum(seconds[2] - seconds[1] for seconds in whole[1:])
    assert added <= time.process_time() - began
    evaluations = [whole.evaluate[0], *(whole.evaluate[1:] - whole.evaluate[:-1])]
    assert min(evaluations) >= 2 * EPISODE * STEP
    assert whole.train[1] - whole.train[0] >= 50 * STEP
    # No step of training is among those of an evaluation; that nothing counts twice, the sums above have shown.
    assert whole.evaluate[1] - whole.evaluate[0] < (2 * EPISODE + 50) * STEP
