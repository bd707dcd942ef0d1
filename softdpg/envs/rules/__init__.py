"""The reward rules, one for each environment: readable and testable without a simulator."""

from softdpg.envs.rules.balance import InvertedDoublePendulumRule, InvertedPendulumRule, PendulumRule
from softdpg.envs.rules.base import Rule
from softdpg.envs.rules.locomotion import (
    AntRule,
    BipedalWalkerRule,
    HalfCheetahRule,
    HopperRule,
    HumanoidRule,
    Walker2dRule,
)
from softdpg.envs.rules.stages import LunarLanderRule, MountainCarRule

__all__ = [
    "AntRule",
    "BipedalWalkerRule",
    "HalfCheetahRule",
    "HopperRule",
    "HumanoidRule",
    "InvertedDoublePendulumRule",
    "InvertedPendulumRule",
    "LunarLanderRule",
    "MountainCarRule",
    "PendulumRule",
    "Rule",
    "Walker2dRule",
]
