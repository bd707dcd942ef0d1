"""The buffer that suits a model, and batches from it."""

import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3 import HerReplayBuffer
from stable_baselines3.common.buffers import DictReplayBuffer, NStepReplayBuffer, ReplayBuffer
from transitions import episodes, fill, goal_env, seed, spaces_of, transition

from softdpg import DDPG
from softdpg.replay.batches import flat_batch, keeps_n_steps, make_replay_buffer
from softdpg.replay.memory import RecordReplayBuffer
from softdpg.replay.spaces import SpaceError

BOX, ACTIONS = spaces_of()
IMAGE = spaces.Box(0, 255, (3, 8, 8), np.uint8)


def make(space=BOX, replay_buffer_class=None, n_steps=1, optimize_memory_usage=False, **kwargs):
    return make_replay_buffer(
        replay_buffer_class,
        20,
        space,
        ACTIONS,
        None,
        n_envs=1,
        n_steps=n_steps,
        gamma=0.9,
        optimize_memory_usage=optimize_memory_usage,
        replay_buffer_kwargs=kwargs,
    )


@pytest.mark.parametrize(
    ("space", "n_steps", "expected"),
    [
        (BOX, 1, RecordReplayBuffer),
        (spaces.Box(-1, 1, (3,), np.float64), 3, RecordReplayBuffer),
        (IMAGE, 1, ReplayBuffer),
        (IMAGE, 3, NStepReplayBuffer),
        (spaces.Dict(a=BOX), 1, DictReplayBuffer),
    ],
)
def test_the_class_follows_from_the_space(space, n_steps, expected):
    buffer = make(space, n_steps=n_steps)
    assert type(buffer) is expected
    if isinstance(buffer, NStepReplayBuffer):
        assert (buffer.n_steps, buffer.gamma) == (n_steps, 0.9)


def test_several_steps_of_dict_observations_are_refused():
    with pytest.raises(SpaceError, match="n_steps must be 1 for a Dict observation space, got 3"):
        make(spaces.Dict(a=BOX), n_steps=3)


@pytest.mark.parametrize(
    "settings",
    [
        dict(optimize_memory_usage=True, handle_timeout_termination=False),
        dict(replay_buffer_class=ReplayBuffer, optimize_memory_usage=True, handle_timeout_termination=False),
    ],
)
def test_observations_are_stored_once_on_request(settings):
    """``optimize_memory_usage`` is an argument of its own, or one of ``replay_buffer_kwargs``."""
    as_argument = make(**settings)
    kwargs = dict(optimize_memory_usage=True, handle_timeout_termination=False)
    among_kwargs = make_replay_buffer(
        settings.get("replay_buffer_class"), 20, BOX, ACTIONS, None, n_envs=1, n_steps=1, gamma=0.9,
        optimize_memory_usage=False, replay_buffer_kwargs=kwargs,
    )  # fmt: skip
    assert kwargs.keys() == {"optimize_memory_usage", "handle_timeout_termination"}  # the user's own dict
    for buffer in (as_argument, among_kwargs):
        assert type(buffer) is ReplayBuffer
        assert buffer.optimize_memory_usage
        assert not hasattr(buffer, "next_observations")


def test_a_class_of_sb3_keeps_its_own_steps():
    assert keeps_n_steps(None)
    assert keeps_n_steps(RecordReplayBuffer)
    assert not keeps_n_steps(NStepReplayBuffer)
    with pytest.warns(UserWarning, match="n_steps=2 has no effect with replay_buffer_class=NStepReplayBuffer"):
        buffer = make(replay_buffer_class=NStepReplayBuffer, n_steps=2, gamma=0.8)
    assert (buffer.n_steps, buffer.gamma) == (3, 0.8)


@pytest.mark.parametrize("n_steps", [1, 3])
def test_a_batch_of_sb3s_buffer_is_the_sample_of_records(n_steps):
    kwargs = dict(n_steps=n_steps, gamma=0.9)
    records = RecordReplayBuffer(30, BOX, ACTIONS, device="cpu", **kwargs)
    of_sb3 = NStepReplayBuffer(30, BOX, ACTIONS, device="cpu", **kwargs)
    for buffer in (records, of_sb3):
        fill(buffer, map(transition, range(40)))
    seed(2)
    expected = records.sample_arrays(16)
    seed(2)
    batch = flat_batch(of_sb3.sample(16), BOX, 0.9)
    for actual, array in zip(batch, expected, strict=True):
        assert actual.shape == array.shape
        np.testing.assert_allclose(actual, array, rtol=1e-5, atol=1e-6)


def test_every_batch_of_sb3s_buffer_has_its_share_of_goals_that_were_set():
    """Several batches are sampled at once; SB3 puts the transitions with their own goals first."""
    env = goal_env()
    model = DDPG(
        "MultiInputPolicy",
        env,
        buffer_size=300,
        replay_buffer_class=HerReplayBuffer,
        policy_kwargs={"net_arch": [4, 4]},
    )
    fill(model.replay_buffer, episodes(1, 200))
    observations = np.asarray(model._sample_batches(4, 25).observations)
    assert observations.shape == (4, 25, 6)
    first = 2 * list(env.observation_space.spaces).index("desired_goal")
    goals = observations[:, :, first : first + 2]
    assert (goals == np.round(goals)).all(axis=2).sum(axis=1).tolist() == [20, 20, 20, 20]
