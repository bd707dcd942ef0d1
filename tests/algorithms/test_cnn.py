"""CnnPolicy has the features of SB3's NatureCNN and the gradients of PyTorch, and learns a task."""

import gymnasium as gym
import jax
import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from jax.extend.core import jaxprs_in_params
from stable_baselines3.common.buffers import NStepReplayBuffer, ReplayBuffer
from stable_baselines3.common.envs import FakeImageEnv
from stable_baselines3.common.torch_layers import NatureCNN as TorchNatureCNN
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from softdpg import DDPG, TD3, SoftDDPG, SoftTD3
from softdpg.algorithms.cnn import NatureCNN
from softdpg.algorithms.family import FAMILY, ActionValue, SmoothedGradient, SmoothedTarget
from softdpg.algorithms.policies import CnnPolicy
from softdpg.replay.batches import Batch
from softdpg.replay.memory import RecordReplayBuffer
from tests.updates import LEARNING_RATE, QF_LEARNING_RATE, TAU, run

SMALL = dict(learning_starts=8, batch_size=4, buffer_size=40, seed=0)
TINY = dict(net_arch=[8], features_extractor_kwargs=dict(features_dim=6))
IMAGES = spaces.Box(0, 255, (2, 40, 37), np.uint8)
ACTIONS = spaces.Box(-1, 1, (3,))


def fake_images(**kwargs):
    return FakeImageEnv(**dict(screen_height=36, screen_width=40, n_channels=1, discrete=False) | kwargs)


def torch_cnn(params, space, features_dim):
    """SB3's network with the weights of softdpg's."""
    cnn = TorchNatureCNN(space, features_dim)
    convolutions = [cnn.cnn[i] for i in (0, 2, 4)]
    with th.no_grad():
        for i, layer in enumerate(convolutions):
            layer.weight.copy_(th.tensor(np.array(params[f"Conv_{i}"]["kernel"])).permute(3, 2, 0, 1))
            layer.bias.copy_(th.tensor(np.array(params[f"Conv_{i}"]["bias"])))
        kernel = np.array(params["Dense_0"]["kernel"])  # of (H, W, C) flattened, PyTorch's of (C, H, W)
        height, width = (((((side - 8) // 4 + 1) - 4) // 2 + 1) - 2 for side in space.shape[1:])
        kernel = kernel.reshape(height, width, 64, -1).transpose(2, 0, 1, 3).reshape(kernel.shape)
        cnn.linear[0].weight.copy_(th.tensor(kernel.T))
        cnn.linear[0].bias.copy_(th.tensor(np.array(params["Dense_0"]["bias"])))
    return cnn


def in_flax_layout(cnn):
    """The weights of a :func:`torch_cnn` in the layout of softdpg's."""
    convolutions = [cnn.cnn[i] for i in (0, 2, 4)]
    found = {
        f"Conv_{i}": {"kernel": layer.weight.detach().permute(2, 3, 1, 0), "bias": layer.bias.detach()}
        for i, layer in enumerate(convolutions)
    }
    kernel = cnn.linear[0].weight.detach().T
    pixels = len(kernel) // 64
    kernel = kernel.reshape(64, pixels, -1).permute(1, 0, 2).reshape(kernel.shape)
    return found | {"Dense_0": {"kernel": kernel, "bias": cnn.linear[0].bias.detach()}}


def random_images(rng, batch=5, space=IMAGES):
    return rng.integers(0, 256, (batch, *space.shape), dtype=np.uint8)


@pytest.mark.parametrize("divide", [True, pytest.param(False, marks=pytest.mark.extended)])
def test_features_are_those_of_sb3(divide):
    images = random_images(np.random.default_rng(0))
    flat = images.reshape(5, -1) if divide else images.reshape(5, -1).astype(np.float32) / 100
    cnn = NatureCNN(IMAGES.shape, 32, divide)
    params = cnn.init(jax.random.PRNGKey(0), flat)
    of_sb3 = torch_cnn(params["params"], IMAGES, 32)
    with th.no_grad():
        expected = of_sb3(th.tensor(images).float() / (255 if divide else 100)).numpy()
    assert (expected > 0).any()
    np.testing.assert_allclose(cnn.apply(params, flat), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.extended
def test_weights_start_as_in_sb3():
    params = NatureCNN(IMAGES.shape).init(jax.random.PRNGKey(0), np.zeros((1, 2 * 40 * 37)))["params"]
    of_sb3 = TorchNatureCNN(IMAGES)
    for i, layer in zip(range(3), (of_sb3.cnn[0], of_sb3.cnn[2], of_sb3.cnn[4]), strict=True):
        for name, weight in (("kernel", layer.weight), ("bias", layer.bias)):
            weights, bound = np.abs(params[f"Conv_{i}"][name]), np.prod(layer.weight.shape[1:]) ** -0.5
            assert 0.8 * bound < weights.max() <= bound
            assert 0.8 * bound < weight.abs().max().item() <= bound
    assert params["Dense_0"]["kernel"].shape == of_sb3.linear[0].weight.T.shape


def make_policy(**kwargs):
    policy = CnnPolicy(IMAGES, ACTIONS, lambda _: 0.0, **TINY | kwargs)
    policy.build(jax.random.PRNGKey(1))
    return policy


def image_batch(batch=6):
    rng = np.random.default_rng(3)
    return Batch(
        random_images(rng, batch).reshape(batch, -1),
        rng.uniform(-1, 1, (batch, 3)).astype(np.float32),
        random_images(rng, batch).reshape(batch, -1),
        (rng.random(batch) < 0.3).astype(np.float32),
        rng.normal(size=batch).astype(np.float32),
        np.full(batch, 0.9, np.float32),
    )


class TorchNetwork:
    """A hidden layer of relu on features and, for the critic, the action, with the weights of softdpg's network."""

    def __init__(self, params):
        self.cnn = torch_cnn(params["features_extractor"], IMAGES, 6)
        self.dense = {
            f"{layer}.{name}": th.tensor(np.array(weight), requires_grad=True)
            for layer, weights in params.items()
            if layer != "features_extractor"
            for name, weight in weights.items()
        }

    def weights(self):
        return [*self.cnn.parameters(), *self.dense.values()]

    def descend(self, loss, learning_rate):
        """Take one step of gradient descent and return the weights in the layout of softdpg's network."""
        gradients = dict(zip(self.weights(), th.autograd.grad(loss, self.weights()), strict=True))
        with th.no_grad():
            for weight, gradient in gradients.items():
                weight -= learning_rate * gradient
        found = {"features_extractor": in_flax_layout(self.cnn)}
        for key, weight in self.dense.items():
            layer, name = key.split(".")
            found.setdefault(layer, {})[name] = weight.detach()
        return found

    def pi(self, observations):
        w = self.dense
        x = th.relu(self.cnn(observations) @ w["Dense_0.kernel"] + w["Dense_0.bias"])
        return th.tanh(x @ w["Dense_1.kernel"] + w["Dense_1.bias"])

    def q(self, observations, actions):
        w = self.dense
        x = self.cnn(observations) @ w["hidden_0.kernel"] + w["hidden_0.bias"] + actions @ w["action.kernel"]
        return (th.relu(x) @ w["value.kernel"] + w["value.bias"])[:, 0]


def assert_close(got, want):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), got, want)


@pytest.mark.extended
def test_an_update_is_the_one_that_pytorch_computes():
    policy, batch = make_policy(optimizer_class=th.optim.SGD), image_batch()
    states = (policy.actor_state, policy.qf_state)
    actor, critic = TorchNetwork(states[0].params["params"]), TorchNetwork(_first(states[1].params["params"]))
    as_images = lambda flat: th.tensor(flat.reshape(-1, *IMAGES.shape)).float() / 255  # noqa: E731
    now, later = as_images(batch.observations), as_images(batch.next_observations)
    with th.no_grad():  # at first the targets are the networks themselves
        y = th.tensor(batch.rewards) + th.tensor(1 - batch.dones) * 0.9 * critic.q(later, actor.pi(later))
    loss = 0.5 * (y - critic.q(now, th.tensor(batch.actions))).square().mean()
    new_critic = critic.descend(loss, QF_LEARNING_RATE)
    new_actor = actor.descend(-critic.q(now, actor.pi(now)).mean(), LEARNING_RATE)

    got_actor, got_critic, metrics = run(FAMILY["DDPG"], policy, batch, steps=1)
    np.testing.assert_allclose(metrics["critic_loss"], loss.item(), rtol=1e-5)
    assert_close(got_actor.params["params"], new_actor)
    assert_close(_first(got_critic.params["params"]), new_critic)
    before = states[0].params["params"]["features_extractor"]["Conv_0"]["kernel"]
    after = got_actor.params["params"]["features_extractor"]["Conv_0"]["kernel"]
    assert np.abs(after - before).max() > 1e-8
    target = got_actor.target_params["params"]["features_extractor"]["Conv_0"]["kernel"]
    np.testing.assert_allclose(target, before + TAU * (after - before), rtol=1e-5, atol=1e-9)


def _first(params):
    return jax.tree.map(lambda leaf: leaf[0], params)


@pytest.mark.extended
@pytest.mark.parametrize("n_samples", [2, 50])
def test_a_state_is_convolved_once_however_many_actions_it_has(n_samples):
    policy, batch = make_policy(n_critics=2), image_batch()
    for rule in (SmoothedTarget(n_samples), SmoothedGradient(n_samples)):

        def evaluate(params, rule=rule):
            q = ActionValue(policy.qf, "min", params, batch.observations)
            return rule(q, batch.actions, jax.random.PRNGKey(0), 0.2)

        jaxpr = jax.make_jaxpr(evaluate)(policy.qf_state.params).jaxpr
        convolved = [eqn.invars[0].aval.shape[0] for eqn in _convolutions(jaxpr)]
        assert convolved == [6] * 3 * 2  # three layers in each of two critics, a batch of six


def _convolutions(jaxpr):
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "conv_general_dilated":
            yield eqn
        for inner in jaxprs_in_params(eqn.params):
            yield from _convolutions(inner)


SETTINGS = {DDPG: {}, SoftDDPG: dict(n_samples=2), TD3: {}, SoftTD3: dict(n_samples=2, train_freq=2, gradient_steps=2)}


@pytest.mark.extended
@pytest.mark.parametrize("algorithm", SETTINGS)
def test_family_learns_from_bytes_and_is_saved_exactly(algorithm, tmp_path):
    model = algorithm("CnnPolicy", fake_images(), policy_kwargs=TINY, **SMALL | SETTINGS[algorithm])
    before = model.policy.state_dict()
    model.learn(14)
    buffer = model.replay_buffer
    assert type(buffer) is (NStepReplayBuffer if algorithm is SoftTD3 else ReplayBuffer)
    assert buffer.observations.dtype == buffer.next_observations.dtype == np.uint8
    batch = model._sample_batch(4)
    assert batch.observations.dtype == np.uint8
    assert batch.observations.shape == (4, 36 * 40)
    after = model.policy.state_dict()
    for name in ("actor", "critic", "actor_target", "critic_target"):
        kernel = f"{name}.features_extractor.Conv_0.kernel"
        assert np.abs(after[kernel] - before[kernel]).max() > 0

    image, _ = fake_images().reset()  # channels last; the networks have them first
    action, _ = model.predict(image, deterministic=True)
    np.testing.assert_array_equal(action, model.predict(image.transpose(2, 0, 1), deterministic=True)[0])
    pixels = image.transpose(2, 0, 1).reshape(1, -1)
    raw = model.policy.actor.module.apply(model.policy.actor_state.params, pixels)
    np.testing.assert_allclose(model.policy.unscale_action(np.asarray(raw))[0], action, rtol=1e-5)

    model.save(tmp_path / "model")
    loaded = algorithm.load(tmp_path / "model", env=fake_images())
    jax.tree.map(np.testing.assert_array_equal, loaded.get_parameters(), model.get_parameters())
    np.testing.assert_array_equal(loaded.predict(image, deterministic=True)[0], action)
    model.policy.save(tmp_path / "policy.pkl")
    policy = CnnPolicy.load(tmp_path / "policy.pkl")
    np.testing.assert_array_equal(policy.predict(image, deterministic=True)[0], action)
    loaded.learn(14)


class BrightColumn(gym.Env):
    """An episode of one step: the action tells where the bright column of an image is; reward minus squared error."""

    observation_space = spaces.Box(0, 255, (36, 36, 1), np.uint8)
    action_space = spaces.Box(-1, 1, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        column = self.np_random.integers(36)
        self.place = column / 17.5 - 1
        image = np.zeros((36, 36, 1), np.uint8)
        image[:, column] = 255
        return image, {}

    def step(self, action):
        reward = -((float(action[0]) - self.place) ** 2)
        return np.zeros((36, 36, 1), np.uint8), reward, True, False, {}


@pytest.mark.extended
def test_learns_where_the_bright_column_is():
    model = DDPG(
        "CnnPolicy",
        BrightColumn(),
        learning_rate=3e-4,
        qf_learning_rate=2e-3,
        learning_starts=400,
        batch_size=32,
        buffer_size=1_000,
        seed=0,
        policy_kwargs=dict(net_arch=[32, 32], features_extractor_kwargs=dict(features_dim=32)),
    )
    env = BrightColumn()

    def mean_error():
        errors = []
        for seed in range(40):
            image, _ = env.reset(seed=seed)
            errors.append(abs(model.predict(image, deterministic=True)[0][0] - env.place))
        return np.mean(errors)

    assert mean_error() > 0.4
    model.learn(800)
    assert mean_error() < 0.15


@pytest.mark.extended
def test_images_of_vecnormalize():
    def env():
        return VecNormalize(DummyVecEnv([lambda: fake_images(channel_first=True)]))

    with pytest.raises(ValueError, match=r"CnnPolicy needs images.*normalize_images=False"):
        DDPG("CnnPolicy", env(), policy_kwargs=TINY, **SMALL)
    model = DDPG("CnnPolicy", env(), policy_kwargs=dict(normalize_images=False, **TINY), **SMALL).learn(12)
    assert isinstance(model.replay_buffer, RecordReplayBuffer)
    assert not model.policy.actor.features_extractor.divide


@pytest.mark.extended
def test_extractor_of_sb3_by_its_class():
    extractor = dict(features_extractor_class=TorchNatureCNN, **TINY)
    by_class = DDPG("MlpPolicy", fake_images(), policy_kwargs=extractor, **SMALL)
    by_name = DDPG("CnnPolicy", fake_images(), policy_kwargs=TINY, **SMALL)
    assert by_class.policy.actor.module is by_name.policy.actor.module
    assert by_class.policy.actor.features_extractor is not by_class.policy.critic.features_extractor


@pytest.mark.parametrize(
    ("env", "policy_kwargs", "message"),
    [
        (dict(screen_height=35), {}, r"images of at least 36 x 36 pixels with channels first, got \(1, 35, 40\)"),
        ({}, dict(share_features_extractor=True), "share_features_extractor=True is not supported"),
        ({}, dict(features_extractor_kwargs=dict(depth=3)), "features_extractor_kwargs has 'depth'"),
        ({}, dict(features_extractor_kwargs=dict(features_dim=0)), "features_dim must be an integer of at least 1"),
    ],
)
def test_what_is_refused(env, policy_kwargs, message):
    with pytest.raises(ValueError, match=message):
        DDPG("CnnPolicy", fake_images(**env), policy_kwargs=policy_kwargs, **SMALL)


def test_vectors_are_no_images():
    with pytest.raises(AssertionError, match="CnnPolicy needs images"):  # SB3's type of error
        DDPG("CnnPolicy", "Pendulum-v1", **SMALL)


@pytest.mark.extended
def test_export_is_refused_with_the_reason(tmp_path):
    model = DDPG("CnnPolicy", fake_images(), policy_kwargs=TINY, **SMALL)
    with pytest.raises(ValueError, match="a CnnPolicy cannot be exported: an exported policy has only dense layers"):
        model.export(tmp_path / "policy.onnx")
