"""A random order without sorting, which would cost as much as the gradients on CPU."""

import math

import jax
import jax.numpy as jnp

from lifedrift_jax.rng import mix

ROUNDS = 6  # from 4 on, tests of uniformity no longer tell the order from a sorted one
FEWEST_ROWS = 16  # with fewer a round moves too little


def shuffled(key: jax.Array, count: int) -> jax.Array:
    """A random order of 0 .. count - 1: [count] int32. `key` is consumed.

    The numbers are laid out in rows; in each round every row is rotated by a random amount,
    then every column: a Feistel network over two residues, so a permutation whatever the
    amounts are. Where `count` has no two factors to make rows of, it is sorted instead.
    """
    rows = next(n for n in range(math.isqrt(count), 0, -1) if count % n == 0)
    columns = count // rows
    if rows < FEWEST_ROWS or columns >= 2**16:
        return jax.random.permutation(key, jnp.arange(count, dtype=jnp.int32))
    number = jnp.arange(count, dtype=jnp.uint32)
    row, column = number // jnp.uint32(columns), number % jnp.uint32(columns)
    salts = jax.random.bits(key, (ROUNDS, 2), jnp.uint32)
    for row_salt, column_salt in salts:
        column = _rotated(column, mix(row + row_salt), columns)
        row = _rotated(row, mix(column + column_salt), rows)
    return (row * jnp.uint32(columns) + column).astype(jnp.int32)


def _rotated(place: jax.Array, word: jax.Array, size: int) -> jax.Array:
    """(place + amount) modulo size, the amount drawn from the upper half of `word`."""
    amount = ((word >> 16) * jnp.uint32(size)) >> 16
    moved = place + amount
    return jnp.where(moved >= size, moved - jnp.uint32(size), moved)
