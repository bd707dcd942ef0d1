"""Small algorithms for tests of the benchmark, as a plug-in of the registry: one that learns, one that fails."""

from softdpg.algorithms.registry import Algorithm, register
from softdpg.algorithms.td3 import TD3

_TINY = {
    "net_arch": (16, 16),
    "batch_size": 16,
    "buffer_size": 500,
    "learning_starts": 50,
    "train_freq": 1,
    "gradient_steps": 1,
}


class Failing(TD3):
    """Learns for a while."""

    def train(self, gradient_steps, batch_size):
        if self.num_timesteps > 150:
            raise RuntimeError("out of ideas")
        super().train(gradient_steps, batch_size)


register(Algorithm("tiny-td3", "Tiny TD3", "softdpg.algorithms.td3:TD3", hyperparameters=_TINY))
register(Algorithm("failing", "Failing", "tiny_algorithms:Failing", hyperparameters=_TINY))
