"""The paper's discrete-reward environments and the toy, registered with Gymnasium under ``softdpg/``."""

import gymnasium as gym

# Short name (the paper's, in one word) -> base environment and module of the class ``<name>Discrete``. Entry points
# are strings, so that registering imports no simulator.
DISCRETE_ENVS = {
    "Ant": ("Ant-v5", "mujoco"),
    "HalfCheetah": ("HalfCheetah-v5", "mujoco"),
    "Hopper": ("Hopper-v5", "mujoco"),
    "Walker2d": ("Walker2d-v5", "mujoco"),
    "Humanoid": ("Humanoid-v5", "mujoco"),
    "InvertedPendulum": ("InvertedPendulum-v5", "mujoco"),
    "InvertedDoublePendulum": ("InvertedDoublePendulum-v5", "mujoco"),
    "BipedalWalker": ("BipedalWalker-v3", "box2d"),
    "LunarLander": ("LunarLanderContinuous-v3", "box2d"),
    "Pendulum": ("Pendulum-v1", "classic_control"),
    "MountainCar": ("MountainCarContinuous-v0", "classic_control"),
}


def register_envs() -> None:
    """Register every environment of the package with Gymnasium."""
    for name, (base_id, module) in DISCRETE_ENVS.items():
        gym.register(
            id=f"softdpg/{name}Discrete-v0",
            entry_point=f"softdpg.envs.{module}:{name}Discrete",
            max_episode_steps=gym.spec(base_id).max_episode_steps,
            order_enforce=False,  # DiscreteReward is an OrderEnforcing
        )
    gym.register(id="softdpg/Toy-v0", entry_point="softdpg.envs.toy:Toy")
