"""Running mean and spread of observations."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

BOUND = 10.0  # scaled features are clipped to +- this


class Normalizer(NamedTuple):
    """Moments of all features seen so far.

    Attributes:
        count: () float32, how many observations.
        mean: [F] float32; 0 where there are none.
        square: [F] float32, sum of (feature - mean)**2.
    """

    count: jax.Array  # type: ignore[assignment]  # a tuple has a method of this name
    mean: jax.Array
    square: jax.Array


def empty(size: int) -> Normalizer:
    """Nothing seen: `scale` then only clips."""
    zeros = jnp.zeros(size, jnp.float32)
    return Normalizer(jnp.float32(0), zeros, zeros)


def scale(normalizer: Normalizer | None, features: jax.Array) -> jax.Array:
    """`features` [..., F] minus the mean, over the standard deviation, clipped to +-10.

    None = the features as they are.
    """
    if normalizer is None:
        return features
    count = jnp.maximum(normalizer.count, 1)
    variance = jnp.where(normalizer.count > 0, normalizer.square / count, 1)
    factor = jax.lax.rsqrt(variance + 1e-8)
    shape = (1,) * (features.ndim - 1) + (-1,)
    centred = features - normalizer.mean.reshape(shape)
    return jnp.clip(centred * factor.reshape(shape), -BOUND, BOUND)


def merge(normalizer: Normalizer, features: jax.Array, axis_name: str | None = None) -> Normalizer:
    """With the observations `features` [N, F] added, those of all devices of `axis_name`.

    Chan, Golub and LeVeque's formula for the moments of two samples together.
    """

    def mean_over(x: jax.Array) -> jax.Array:
        x = jnp.mean(x, 0)
        return x if axis_name is None else jax.lax.pmean(x, axis_name)

    shards = 1 if axis_name is None else jax.lax.psum(1, axis_name)
    count = jnp.float32(features.shape[0] * shards)
    mean = mean_over(features)
    square = count * mean_over((features - mean[None]) ** 2)
    total = normalizer.count + count
    shift = mean - normalizer.mean
    return Normalizer(
        total,
        normalizer.mean + shift * (count / total),
        normalizer.square + square + shift * shift * (normalizer.count * count / total),
    )
