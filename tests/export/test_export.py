"""Exported policies return the actions of ``predict``."""

import importlib.util
import subprocess
import sys

import flax.linen as nn
import gymnasium as gym
import numpy as np
import pytest
from action_spaces import SPACES, Acting
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from softdpg import DDPG, TD3, SoftDDPG, SoftTD3
from softdpg.algorithms.actions import from_env, leaves
from softdpg.export import read_safetensors

onnxruntime = pytest.importorskip("onnxruntime")
FORMATS = ("onnx", "py", "safetensors")


class Spaces(gym.Env):
    """An environment with given spaces and random observations."""

    def __init__(self, observation_space, action_space):
        self.observation_space, self.action_space = observation_space, action_space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), 0.0, False, False, {}


# Observations of order one: the rounding error of float32 is 1e-6 at observations of 10.
BOX = spaces.Box(-1, 1, (5,), np.float32)
WIDE = spaces.Box(np.array([-2, 0], np.float32), np.array([1, 50], np.float32))
CASES = {
    "float32": (BOX, WIDE),
    "float64": (spaces.Box(-np.inf, np.inf, (4,), np.float64), spaces.Box(-1, 1, (3,), np.float64)),
    "matrices": (spaces.Box(-1, 1, (2, 3), np.float32), spaces.Box(-1, 1, (2, 2), np.float32)),
    "bits": (spaces.MultiBinary(6), WIDE),
    "dict": (spaces.Dict(goal=BOX, observation=spaces.Box(-1, 1, (3,), np.float64)), WIDE),
}


NET_ARCH = {"net_arch": [16, 16]}


def model_on(observation_space, action_space, normalize=False, algorithm=SoftDDPG, **policy_kwargs):
    env = DummyVecEnv([lambda: Spaces(observation_space, action_space)])
    if normalize:
        env = VecNormalize(env, norm_reward=False, clip_obs=1.2)
        env.reset()
        for _ in range(20):
            env.step([action_space.sample()])
    policy = "MultiInputPolicy" if isinstance(observation_space, spaces.Dict) else "MlpPolicy"
    return algorithm(policy, env, seed=3, buffer_size=10, policy_kwargs=NET_ARCH | policy_kwargs)


@pytest.fixture(scope="module")
def plain():
    """A model that the tests do not change."""
    return model_on(BOX, WIDE)


@pytest.fixture(scope="module")
def pendulum():
    return DDPG("MlpPolicy", "Pendulum-v1", seed=0, buffer_size=10, policy_kwargs=NET_ARCH)


def load(path):
    """The exported policy as a function of a batch of observations."""
    if path.suffix == ".onnx":
        session = onnxruntime.InferenceSession(path.read_bytes())
        inputs = session.get_inputs()
        assert {i.type for i in inputs} == {"tensor(float)"}  # whatever the space's type
        as_dict = lambda x: x if isinstance(x, dict) else {inputs[0].name: x}  # noqa: E731
        return lambda x: session.run(None, {key: part.astype(np.float32) for key, part in as_dict(x).items()})[0]
    if path.suffix == ".py":
        spec = importlib.util.spec_from_file_location("exported", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.predict
    return read_safetensors(path)


def batch_of(space, size):
    space.seed(5)
    samples = [space.sample() for _ in range(size)]
    if isinstance(space, spaces.Dict):
        return {key: np.stack([s[key] for s in samples]) for key in space}
    return np.stack(samples)


def assert_equal_to_predict(model, folder, observations, normalize=None):
    """Compare each format with ``predict``."""
    expected, _ = model.predict(normalize.normalize_obs(observations) if normalize else observations)
    half_range = 0.5 * (model.action_space.high - model.action_space.low)
    assert np.std(expected) > 0.01
    for suffix in FORMATS:
        actions = load(model.export(folder / f"policy.{suffix}"))(observations)
        assert actions.shape == expected.shape, suffix
        assert actions.dtype == expected.dtype, suffix
        assert np.max(np.abs(actions - expected) / half_range) < 1e-6, suffix


@pytest.mark.parametrize("case", CASES)
def test_each_format_is_equal_to_predict(tmp_path, case):
    assert_equal_to_predict(model_on(*CASES[case]), tmp_path, batch_of(CASES[case][0], 64))


@pytest.mark.parametrize("case", ["float32", "float64", "dict"])
def test_statistics_of_vecnormalize_are_included(tmp_path, case):
    model = model_on(*CASES[case], normalize=True)
    observations = batch_of(CASES[case][0], 64)
    normalized = model.get_vec_normalize_env().normalize_obs(observations)
    parts = normalized.values() if isinstance(normalized, dict) else [normalized]
    assert any(np.max(np.abs(part)) == np.float32(1.2) for part in parts)  # the limit is reached
    assert_equal_to_predict(model, tmp_path, observations, model.get_vec_normalize_env())


def test_parts_that_are_not_normalised_stay_as_they_are(tmp_path):
    observation_space, action_space = CASES["dict"]
    model = model_on(observation_space, action_space, normalize=True)
    normalize = model.get_vec_normalize_env()
    normalize.norm_obs_keys = ["observation"]
    assert_equal_to_predict(model, tmp_path, batch_of(observation_space, 32), normalize)


@pytest.mark.parametrize("activation", [nn.relu, nn.tanh, nn.elu, nn.silu])
def test_activations(tmp_path, activation):
    assert_equal_to_predict(model_on(BOX, WIDE, activation_fn=activation), tmp_path, batch_of(BOX, 64))


@pytest.mark.parametrize("algorithm", [TD3, SoftTD3])  # SoftTD3 also standardises the network's input
def test_layer_norm(tmp_path, algorithm):
    model = model_on(BOX, WIDE, algorithm=algorithm, layer_norm=True)
    params = model.policy.actor_state.params["params"]
    rng = np.random.default_rng(0)
    for name in ("LayerNorm_0", "LayerNorm_1"):  # as if trained
        params[name] = {
            key: (value + rng.normal(0, 0.3, value.shape)).astype("f") for key, value in params[name].items()
        }
    assert_equal_to_predict(model, tmp_path, batch_of(BOX, 64))


def test_unknown_activation_is_refused(tmp_path):
    model = model_on(BOX, WIDE, activation_fn=nn.softplus)
    with pytest.raises(ValueError, match="activation_fn must be one of elu, relu, silu, tanh for export, got"):
        model.export(tmp_path / "policy.onnx")
    assert not (tmp_path / "policy.onnx").exists()


@pytest.mark.parametrize("space", [spaces.Discrete(4), spaces.Box(0, 255, (3, 8, 8), np.uint8)])
def test_discrete_observations_and_images_are_refused(tmp_path, space):
    with pytest.raises(ValueError, match=r"a policy on (Discrete|images).* cannot be exported"):
        model_on(space, WIDE).export(tmp_path / "policy.py")


@pytest.mark.parametrize("suffix", ["py", "safetensors"])
def test_one_observation_gives_one_action(tmp_path, suffix, plain):
    policy = load(plain.export(tmp_path / f"policy.{suffix}"))
    observation = batch_of(BOX, 1)[0]
    np.testing.assert_allclose(policy(observation), plain.predict(observation)[0], rtol=0, atol=1e-5)
    assert policy(observation).shape == (2,)
    with pytest.raises(ValueError, match=r"the observation must have shape \(5,\) or be a batch of it, got \(4,\)"):
        policy(observation[:-1])


def test_python_file_needs_only_numpy(tmp_path, pendulum):
    observation = np.array([0.6, -0.8, 2.0], np.float32)
    pendulum.export(tmp_path / "policy.py")
    code = f"""
import sys, numpy
before = set(m.split('.')[0] for m in sys.modules)
import policy
new = set(m.split('.')[0] for m in sys.modules) - before
print(*sorted(new - set(sys.stdlib_module_names)), float(policy.predict(numpy.array({observation.tolist()}))[0]))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    module, action = done.stdout.split()
    assert module == "policy"
    assert float(action) == pytest.approx(pendulum.predict(observation)[0][0], abs=1e-6)


def test_same_episode_in_the_environment(tmp_path, pendulum):
    """The exported policy and ``predict`` reach the same return in an episode."""
    env = gym.make("Pendulum-v1")

    def episode(policy):
        observation, _ = env.reset(seed=7)
        total, done = 0.0, False
        while not done:
            observation, reward, terminated, truncated, _ = env.step(policy(observation))
            total, done = total + float(reward), terminated or truncated
        return total

    numpy_policy = load(pendulum.export(tmp_path / "policy.py"))
    onnx_policy = load(pendulum.export(tmp_path / "policy.onnx"))
    expected = episode(lambda x: pendulum.predict(x)[0])
    assert episode(numpy_policy) == pytest.approx(expected, rel=1e-3)
    assert episode(lambda x: onnx_policy(x[None])[0]) == pytest.approx(expected, rel=1e-3)


def test_metadata(tmp_path, plain):
    import onnx
    from safetensors import safe_open

    from softdpg import __version__

    with safe_open(plain.export(tmp_path / "policy.safetensors"), framework="numpy") as file:
        assert file.metadata()["algorithm"] == "SoftDDPG"
        assert file.metadata()["softdpg"] == __version__
    graph = onnx.load(plain.export(tmp_path / "policy.onnx"))
    assert {p.key: p.value for p in graph.metadata_props} == {"algorithm": "SoftDDPG", "softdpg": __version__}
    assert "algorithm: SoftDDPG" in plain.export(tmp_path / "policy.py").read_text()


def test_unknown_suffix(tmp_path, plain):
    with pytest.raises(ValueError, match=r"path must end in one of .onnx, .py, .safetensors, got '.*policy.pt'"):
        plain.export(tmp_path / "policy.pt")


@pytest.mark.parametrize("name", ["discrete", "multi_discrete", "dict", "nested"])
def test_decoded_actions_are_exported(name, tmp_path):
    space = SPACES[name]
    model = SoftTD3("MlpPolicy", Acting(space), seed=0, buffer_size=10, policy_kwargs=dict(net_arch=[16, 16]))
    observations = np.random.default_rng(0).uniform(-1, 1, (20, 3)).astype(np.float32)
    expected = from_env(space, model.predict(observations)[0])
    code: dict = {}
    exec(model.export(tmp_path / "policy.py").read_text(), code)
    tensors = read_safetensors(model.export(tmp_path / "policy.safetensors"))
    for predict in (code["predict"], tensors):
        assert space.contains(predict(observations[0]))
        np.testing.assert_allclose(from_env(space, predict(observations)), expected, atol=1e-5)
    session = onnxruntime.InferenceSession(str(model.export(tmp_path / "policy.onnx")))
    names = [output.name for output in session.get_outputs()]
    outputs = dict(zip(names, session.run(None, {"observation": observations}), strict=True))
    columns = []
    for path, leaf in leaves(space).items():
        found = outputs[".".join(["action", *map(str, path)])]
        columns.append(from_env(leaf.space, found))
    np.testing.assert_allclose(np.concatenate(columns, axis=1), expected, atol=1e-5)
