"""Spaces: what an observation or an action may be."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np


@dataclass(frozen=True)
class Discrete:
    """The integers 0 .. n - 1.

    Attributes:
        n: how many there are, at least 1.
        dtype: dtype of a sample, int32.
    """

    n: int
    dtype: type = np.int32

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of an element: ()."""
        return ()

    def sample(self, key: jax.Array) -> jax.Array:
        """One element, uniform: () int32. `key` is consumed."""
        return jax.random.randint(key, (), 0, self.n, dtype=jnp.int32)

    def contains(self, x: jax.typing.ArrayLike) -> jax.Array:
        """() bool: x is a scalar of integer dtype in [0, n)."""
        x = _as_it_is(x)
        if x.shape != () or not jnp.issubdtype(x.dtype, jnp.integer):
            return jnp.bool_(False)
        return jnp.asarray((x >= 0) & (x < self.n))


@dataclass(frozen=True)
class Box:
    """Real arrays with one lower and one upper bound for all entries, both included.

    Attributes:
        low, high: bounds.
        shape: shape of an element.
        dtype: dtype of an element, float32.
    """

    low: float
    high: float
    shape: tuple[int, ...]
    dtype: type = np.float32

    def sample(self, key: jax.Array) -> jax.Array:
        """One element, uniform between the (finite) bounds. `key` is consumed."""
        return jax.random.uniform(key, self.shape, self.dtype, self.low, self.high)

    def contains(self, x: jax.typing.ArrayLike) -> jax.Array:
        """() bool: x has the shape and dtype, and every entry lies within the bounds."""
        x = _as_it_is(x)
        if x.shape != self.shape or x.dtype != self.dtype:
            return jnp.bool_(False)
        return jnp.asarray(((x >= self.low) & (x <= self.high)).all())


def _as_it_is(x: jax.typing.ArrayLike) -> jax.Array | np.ndarray:
    """An array that keeps its dtype: jnp.asarray would cut 64 bits to 32 without x64."""
    return x if isinstance(x, jax.Array) else np.asarray(x)


Space = Discrete | Box
