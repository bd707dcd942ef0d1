"""Images: the convolutional network of the DQN paper before actor and critics."""

from functools import partial
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from gymnasium import spaces
from stable_baselines3.common.preprocessing import is_image_space

from softdpg.algorithms.settings import check_integer
from softdpg.replay.spaces import SpaceError

LEAST_PIXELS = 36  # per side, the least that the last convolution needs


class NatureCNN(nn.Module):
    """Three convolutions and a dense layer, each with relu: SB3's ``NatureCNN`` in flax.

    :param shape: ``(C, H, W)`` of an image
    :param features_dim: units of the dense layer
    :param divide: divide pixels by 255
    """

    shape: tuple[int, int, int]
    features_dim: int = 512
    divide: bool = True

    @nn.compact
    def __call__(self, observations: jax.Array) -> jax.Array:
        """Map flattened images ``(batch, C * H * W)``, uint8 or float32, to features ``(batch, features_dim)``."""
        x = observations.reshape(-1, *self.shape).transpose(0, 2, 3, 1).astype(jnp.float32)
        if self.divide:
            x = x / 255
        for channels, width, stride in ((32, 8, 4), (64, 4, 2), (64, 3, 1)):
            convolution = nn.Conv(channels, (width, width), stride, padding="VALID", **_uniform(width**2 * x.shape[-1]))
            x = nn.relu(convolution(x))
        x = x.reshape(len(x), -1)
        return nn.relu(nn.Dense(self.features_dim, **_uniform(x.shape[-1]))(x))


def _uniform(fan_in: int) -> dict[str, Any]:
    """Return PyTorch's initialisation, as in SB3: kernel and bias uniform within ``1 / sqrt(fan_in)``."""
    initializer = partial(jax.random.uniform, minval=-(fan_in**-0.5), maxval=fan_in**-0.5)
    return {"kernel_init": initializer, "bias_init": initializer}


def make_nature_cnn(space: spaces.Space, kwargs: dict[str, Any], normalize_images: bool) -> NatureCNN:
    """Return the network for the images of a space, ``(C, H, W)``; SB3's wrapper puts the channels first.

    Raises ``ValueError`` for a space without images, or for an argument that SB3's ``NatureCNN`` does not have.

    :param space: observation space
    :param kwargs: ``features_dim``; ``normalized_image`` to accept images that are not uint8 from 0 to 255
    :param normalize_images: divide pixels by 255; False also accepts images that are not uint8 from 0 to 255
    """
    for name in kwargs:
        if name not in ("features_dim", "normalized_image"):
            raise ValueError(f"features_extractor_kwargs has {name!r}, which NatureCNN does not have")
    features_dim = kwargs.get("features_dim", 512)
    check_integer("features_dim", features_dim, 1)
    if not is_image_space(space, normalized_image=kwargs.get("normalized_image", False) or not normalize_images):
        raise SpaceError(
            f"CnnPolicy needs images, a Box of uint8 from 0 to 255 with three axes, got {space}; for other images with "
            "channels first, as after VecNormalize, use policy_kwargs=dict(normalize_images=False)"
        )
    assert isinstance(space, spaces.Box)
    channels, height, width = space.shape
    if min(height, width) < LEAST_PIXELS:
        raise SpaceError(f"CnnPolicy needs images of at least 36 x 36 pixels with channels first, got {space.shape}")
    return NatureCNN((channels, height, width), features_dim, normalize_images and is_image_space(space))
