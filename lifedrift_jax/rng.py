"""Keys of an episode, and the cheap counter hash that turns a key into draws.

Random numbers are frozen once released. Everything an episode draws follows from
`(seed, index)`:

* `root = root_key(seed)` is `jax.random.key(seed, impl="threefry2x32")`;
* `k = episode_key(root, i)` is `jax.random.fold_in(root, i)` with the GLOBAL index `i`;
* `reset_key(k)`, `step_key(k, t)` and `policy_key(k, t)` are the keys of the reset, of
  step `t` and of the policy's choice at step `t`.

A threefry block costs more than a whole Life Drift step. Step keys and draws therefore use
a counter hash. With `(k0, k1)` the two words of a key and `mix` the 32-bit finaliser
"lowbias32" (two multiplications, three xor-shifts; constants from Chris Wellons'
hash-prospector search, public domain), word `j` of the key is

    word(key, j) = mix(mix(k0 + LANES[j]) ^ mix(k1))

Each half of the key is mixed twice: mixed once, keys that count up, as those of
`jax.random.key`, fail tests of uniformity and independence. The word is a bijection of `k1`
for each `k0` and of `k0` for each `k1`. Step keys move `k1` by `t * 0x9E3779B9` (2**32 over
the golden ratio, odd, so `t` below 2**32 never repeats) and policy and reset keys move `k0`
by a constant, parts of an instance `k0` by multiples of that increment, so all streams of an
episode use other inputs of the hash. A key may come from
anywhere (`jax.random.key`, `split`, `fold_in`): nothing but its two words is used. This is a
simulation generator, not a cryptographic one.
"""

import operator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

IMPLEMENTATION = "threefry2x32"
SEED_LIMIT = 2**32  # JAX aliases seeds beyond 32 bits, so they are refused
STEP_INCREMENT = 0x9E3779B9
POLICY_OFFSET = 0x5851F42D
RESET_OFFSET = 0x2545F491
# Offsets of the hash's lanes: the first fractional words of sqrt of the first 32 primes (the
# first 16 are initial values of SHA-512 and SHA-384, upper halves): arbitrary, far apart, public.
LANES = (
    0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19,
    0xCBBB9D5D, 0x629A292A, 0x9159015A, 0x152FECD8, 0x67332667, 0x8EB44A87, 0xDB0C2E0D, 0x47B5481D,
    0xAE5F9156, 0xCF6C85D3, 0x2F73477D, 0x6D1826CA, 0x8B43D457, 0xE360B596, 0x1C456002, 0x6F196331,
    0xD94EBEB1, 0x0CC4A611, 0x261DC1F2, 0x5815A7BE, 0x70B7ED67, 0xA1513C69, 0x44F93635, 0x720DCDFD,
)  # fmt: skip


def checked_seed(seed: int) -> int:
    """Return `seed` as an int; raise ValueError unless it is an integer in [0, 2**32)."""
    try:
        value = operator.index(seed)
    except TypeError:
        raise ValueError(f"seed is {seed!r}: use an integer in [0, 2**32)") from None
    if isinstance(seed, bool | np.bool_) or not 0 <= value < SEED_LIMIT:
        raise ValueError(f"seed is {seed!r}: use an integer in [0, 2**32) (JAX aliases others)")
    return value


def is_key(x: Any) -> bool:
    """True for a typed random key, an array of them, or their shape."""
    return bool(jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key))


def root_key(seed: int) -> jax.Array:
    """The key of a seed in [0, 2**32), always threefry2x32 whatever JAX's default is."""
    return jax.random.key(np.uint32(checked_seed(seed)), impl=IMPLEMENTATION)


def episode_key(root: jax.Array, index: jax.Array | int) -> jax.Array:
    """Key of the episode with GLOBAL index `index` (uint32 range) under `root`."""
    return jax.random.fold_in(root, jnp.uint32(index))


def reset_key(key: jax.Array) -> jax.Array:
    """Key of an episode's reset, from the episode's key."""
    return _offset(key, RESET_OFFSET, jnp.uint32(0))


def step_key(key: jax.Array, step: jax.Array | int) -> jax.Array:
    """Key of step `step` (counted from 0), from the episode's key."""
    return _offset(key, 0, _step_offset(step))


def policy_key(key: jax.Array, step: jax.Array | int) -> jax.Array:
    """Key of the policy's choice at step `step` (counted from 0), from the episode's key."""
    return _offset(key, POLICY_OFFSET, _step_offset(step))


def part_key(key: jax.Array, part: jax.Array | int) -> jax.Array:
    """Key of part `part` (from 0) of what one key draws, such as an item of an instance.

    It moves the half of the key that steps leave as it is, so that what is dealt at one step
    shares no part with what is dealt at the next.
    """
    return _offset(key, _step_offset(part), jnp.uint32(0))


def word(key: jax.Array, lane: int) -> jax.Array:
    """Word `lane` (0..31) of a key: () uint32, uniform over all 32-bit values."""
    return _word(key, jnp.uint32(LANES[lane]))


def uniform_pair(key: jax.Array, lane: int) -> tuple[jax.Array, jax.Array]:
    """Two independent uniforms in (0, 1) from word `lane` of a key.

    Each has 16 bits: the 65,536 midpoints (n + 1/2) / 65,536, so the mean is exactly 1/2,
    0 and 1 are never drawn, and the resolution is 2**-16 (1.5e-5). All are exact in float32.

    Returns:
        Two () float32 arrays.
    """
    return _halves(word(key, lane))


def uniform_pairs(key: jax.Array, lane: int, count: int) -> tuple[jax.Array, jax.Array]:
    """`uniform_pair` of `count` words from `lane` on: two [count] float32 arrays."""
    return _halves(_word(key, jnp.asarray(np.array(LANES[lane : lane + count], np.uint32))))


def uniform_index(key: jax.Array, count: jax.Array | int) -> jax.Array:
    """Uniform integer in [0, count), count at most 2**15: () int32, from word 0 of the key.

    Multiplies the upper 16 bits by `count`; the probabilities differ by at most 2**-16.
    """
    bits = word(key, 0) >> 16
    return ((bits * jnp.asarray(count).astype(jnp.uint32)) >> 16).astype(jnp.int32)


def mix(x: jax.Array) -> jax.Array:
    """lowbias32 of uint32 `x`, a bijection in which each input bit flips each output bit."""
    x = (x ^ (x >> 16)) * jnp.uint32(0x7FEB352D)
    x = (x ^ (x >> 15)) * jnp.uint32(0x846CA68B)
    return x ^ (x >> 16)


def _word(key: jax.Array, offset: jax.Array) -> jax.Array:
    k0, k1 = _key_words(key)
    return mix(mix(k0 + offset) ^ mix(k1))


def _halves(bits: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The two uniforms in the lower and the upper half of words."""
    return _midpoint(bits & jnp.uint32(0xFFFF)), _midpoint(bits >> 16)


def _key_words(key: jax.Array) -> tuple[jax.Array, jax.Array]:
    data = jax.random.key_data(key)
    return data[..., 0], data[..., 1]


def _step_offset(step: jax.Array | int) -> jax.Array:
    return jnp.uint32(step) * jnp.uint32(STEP_INCREMENT)


def _offset(key: jax.Array, first: jax.Array | int, second: jax.Array) -> jax.Array:
    k0, k1 = _key_words(key)
    words = jnp.broadcast_arrays(k0 + jnp.uint32(first), k1 + second)
    # Not jnp.stack: under vmap it transposes, and XLA then cannot forward the two words.
    data = jnp.concatenate([w[..., None] for w in words], axis=-1)
    return jax.random.wrap_key_data(data, impl=IMPLEMENTATION)


def _midpoint(bits: jax.Array) -> jax.Array:
    return bits.astype(jnp.float32) * jnp.float32(2**-16) + jnp.float32(2**-17)
