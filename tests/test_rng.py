"""Seeds, keys and draws: legal seeds, one stream under every JAX setting, good statistics.

`golden/rng_v1.json` pins the stream for ever. It was written by

    python tests/test_rng.py

which is to be run again only where the stream is meant to change, under a new file name.
"""

import json
import math
from functools import lru_cache, partial
from itertools import combinations, product
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from lifedrift_jax import rng
from lifedrift_jax.life_drift import draw

GOLDEN = Path(__file__).parent / "golden" / "rng_v1.json"
ALARM = 1e-6  # chance at which one statistic of a perfect generator fails


# Seeds.


@pytest.mark.parametrize("seed", [0, 1, 2**31, 2**32 - 1, np.uint32(7), np.int64(2**32 - 1)])
def test_integers_below_two_to_the_32_are_seeds(seed):
    assert rng.checked_seed(seed) == int(seed)


@pytest.mark.parametrize(
    "seed", [-1, 2**32, 2**64, True, np.bool_(False), 1.0, np.float32(1), float("nan"), "7", None]
)
def test_other_seeds_are_refused_and_named(seed):
    with pytest.raises(ValueError, match=r"seed is .*: use an integer in \[0, 2\*\*32\)"):
        rng.root_key(seed)


def test_no_two_seeds_share_a_root():
    seeds = [0, 1, 2, 2**31, 2**32 - 2, 2**32 - 1]
    assert len({tuple(_data(rng.root_key(seed))) for seed in seeds}) == len(seeds)


def test_no_episode_of_a_seed_is_an_episode_of_another():
    keys = [
        jax.vmap(rng.episode_key, (None, 0))(rng.root_key(seed), np.arange(64)) for seed in range(8)
    ]
    noise = np.concatenate([np.stack(jax.vmap(draw)(k), axis=1) for k in keys])
    assert len(np.unique(noise, axis=0)) == 8 * 64


def test_an_episode_index_means_the_same_alone_and_in_a_batch():
    root = rng.root_key(3)
    batch = jax.vmap(rng.episode_key, (None, 0))(root, np.arange(100, dtype=np.uint32))
    assert np.array_equal(_data(batch)[41], _data(rng.episode_key(root, 41)))


# Streams.


def test_step_policy_and_reset_keys_of_an_episode_are_all_different():
    key, steps = rng.episode_key(rng.root_key(0), 0), np.arange(10_000)
    reset = rng.reset_key(key)
    over_steps = [jax.vmap(f, (None, 0))(key, steps) for f in (rng.step_key, rng.policy_key)]
    alone = [reset, rng.policy_key(reset, 0)]  # the latter starts the policy's carry
    data = np.concatenate([*map(_data, over_steps), *(_data(k)[None] for k in alone)])
    assert len(np.unique(data, axis=0)) == 2 * len(steps) + 2


def test_a_word_never_repeats_over_the_second_half_of_a_key():
    data = np.stack([np.full(2**16, 5, np.uint32), np.arange(2**16, dtype=np.uint32)], axis=1)
    words = jax.vmap(partial(rng.word, lane=0))(_keys(data))
    assert len(np.unique(words)) == 2**16


def test_the_lanes_of_a_key_differ():
    words = [int(rng.word(rng.root_key(0), lane)) for lane in range(len(rng.LANES))]
    assert len(set(words)) == len(words) == 32


def test_uniforms_are_midpoints_strictly_between_0_and_1():
    u = np.stack(jax.vmap(partial(rng.uniform_pair, lane=2))(_random_keys(2**16)))
    levels = (u.astype(np.float64) - 2**-17) * 2**16
    assert u.dtype == np.float32
    assert np.array_equal(levels, np.floor(levels))
    assert 0 <= levels.min() < 100 < 65_000 < levels.max() <= 65_535


@pytest.mark.parametrize("count", [1, 2, 6, 48, 2**15])
def test_an_index_stays_below_its_count_and_reaches_it(count):
    index = np.asarray(jax.vmap(rng.uniform_index, (0, None))(_random_keys(2**16), count))
    assert index.dtype == np.int32
    assert index.min() == 0
    assert index.max() <= count - 1
    if 1 < count <= 48:
        assert _chi_square(np.bincount(index, minlength=count)) > ALARM


# The recorded stream.


def records(seeds, episodes, steps):
    """Keys and draws for all combinations, as nested lists of integers and floats."""
    cases = list(product(seeds, episodes, steps))
    roots = {seed: rng.root_key(seed) for seed in seeds}

    def one(case):
        seed, episode, step = case
        key = rng.episode_key(roots[seed], episode)
        here = rng.step_key(key, step)
        uniforms = [u for lane in range(4) for u in rng.uniform_pair(here, lane)]
        return {
            "seed": seed,
            "episode": episode,
            "step": step,
            "episode_key": _data(key).tolist(),
            "reset_key": _data(rng.reset_key(key)).tolist(),
            "step_key": _data(here).tolist(),
            "policy_key": _data(rng.policy_key(key, step)).tolist(),
            "words": [int(rng.word(here, lane)) for lane in range(16)],
            "uniforms": [float(u) for u in uniforms],
            "index_of_6": int(rng.uniform_index(rng.policy_key(key, step), 6)),
        }

    return [one(case) for case in cases]


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("implementation", ["threefry2x32", "rbg"])
@pytest.mark.parametrize("partitionable", [False, True])
def test_the_stream_is_the_recorded_one_under_every_jax_setting(x64, implementation, partitionable):
    golden = json.loads(GOLDEN.read_text())
    made_by = f"recorded with JAX {golden['jax']}, this is {jax.__version__}"
    with (
        jax.enable_x64(x64),
        jax.default_prng_impl(implementation),
        jax.threefry_partitionable(partitionable),
    ):
        got = records(golden["seeds"], golden["episodes"], golden["steps"])
    for recorded, now in zip(golden["records"], got, strict=True):
        assert now == recorded, made_by


# Statistics. A perfect generator fails one statistic with chance ALARM; there are about 150
# for each source of keys, so about 6e-4 in all. Seeds are fixed: what passes once, passes.

STEPS = 4
BATCH = 2**18
VARIABLES = 8  # the draws of a Life Drift step
ACTIONS = 6


def _episode_keys(i):
    return jax.vmap(rng.episode_key, (None, 0))(rng.root_key(0), i)


def _counted_keys(i):
    """`jax.random.key(0), jax.random.key(1), ...`."""
    return _keys(jnp.stack([jnp.zeros_like(i), i], axis=1))


def _split_keys(i):
    root = jax.random.key(1, impl=rng.IMPLEMENTATION)
    return jax.random.split(jax.random.fold_in(root, i[0]), BATCH)


def _later_keys(i):
    """Steps of one endless episode."""
    return jax.vmap(rng.step_key, (None, 0))(rng.episode_key(rng.root_key(2), 0), i * 64)


SOURCES = {
    "episodes": _episode_keys,
    "counted": _counted_keys,
    "split": _split_keys,
    "one_episode": _later_keys,
}


class Tally(NamedTuple):
    """Sums over the draws of one source of keys.

    Attributes:
        levels: [8, 65536] how often each variable took each level.
        actions: [6] how often the random policy took each action.
        products: name -> (sums of products of standardised values, number of pairs).
        joint: name -> [256] counts of a pair of values cut into 16 bins each.
    """

    levels: np.ndarray
    actions: np.ndarray
    products: dict[str, tuple[np.ndarray, int]]
    joint: dict[tuple, np.ndarray]


def test_counted_keys_are_those_of_jax():
    keys = _counted_keys(jnp.arange(3, dtype=jnp.uint32))
    jax_keys = [_data(jax.random.key(i, impl=rng.IMPLEMENTATION)) for i in range(3)]
    assert np.array_equal(_data(keys), np.stack(jax_keys))


@partial(jax.jit, static_argnums=0)
def _draws(source, first):
    """Levels [8, STEPS, BATCH] int32 in [0, 65536) and actions [STEPS, BATCH] int32."""
    keys = SOURCES[source](first + jnp.arange(BATCH, dtype=jnp.uint32))
    steps = jnp.arange(STEPS)

    def one(step, key):
        noise = jnp.stack(draw(rng.step_key(key, step)))
        action = rng.uniform_index(rng.policy_key(key, step), ACTIONS)
        return (noise * jnp.float32(2**16)).astype(jnp.int32), action

    over_keys = jax.vmap(one, (None, 0), (1, 0))
    return jax.vmap(over_keys, (0, None), (1, 0))(steps, keys)


def _chunks(source, full_size):
    """Draws of 10^8 steps (full size) or 10^6, a chunk at a time, as numpy arrays."""
    for chunk in range(math.ceil((10**8 if full_size else 10**6) / (STEPS * BATCH))):
        yield jax.tree.map(np.asarray, _draws(source, jnp.uint32(chunk * BATCH)))


@lru_cache(maxsize=1)
def tally(source, full_size):
    levels = np.zeros((VARIABLES, 2**16), np.int64)
    actions = np.zeros(ACTIONS, np.int64)
    products, joint = {}, {}
    for noise, action in _chunks(source, full_size):
        for v in range(VARIABLES):
            levels[v] += np.bincount(noise[v].ravel(), minlength=2**16)
        actions += np.bincount(action.ravel(), minlength=ACTIONS)
        x = ((noise + 0.5) / 2**16 - 0.5) * np.sqrt(12)
        a = (action - (ACTIONS - 1) / 2) / np.sqrt((ACTIONS**2 - 1) / 12)
        for name, (p, q) in {
            "variables": (x, x),
            "action": (x, a[None]),
            "neighbours": (x[..., :-1], x[..., 1:]),
            "steps": (x[:, :-1], x[:, 1:]),
        }.items():
            p, q = p.reshape(len(p), -1), q.reshape(len(q), -1)
            sums, pairs = products.get(name, (0, 0))
            products[name] = sums + p @ q.T, pairs + p.shape[1]
        coarse = noise >> 12
        for name, (p, q) in _pairs_of(coarse, action).items():
            counts = np.bincount((16 * p + q).ravel(), minlength=256)
            joint[name] = joint.get(name, 0) + counts
    return Tally(levels, actions, products, joint)


def _pairs_of(coarse, action):
    pairs = {}
    for v, w in combinations(range(VARIABLES), 2):
        pairs["variables", v, w] = coarse[v], coarse[w]
    for v, x in enumerate(coarse):
        pairs["action", v] = x, action
        pairs["neighbours", v] = x[:, :-1], x[:, 1:]
        pairs["steps", v] = x[:-1], x[1:]
    return pairs


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
def test_draws_are_uniform_and_independent(source, full_size):
    """Uniform on all levels, on their high and on their low bits; no pair of variables, of
    neighbouring keys, of successive steps, or of a variable and the random policy's action
    is correlated or dependent.
    """
    seen = tally(source, full_size)
    chances = {("action",): _chi_square(seen.actions)}
    for v, counts in enumerate(seen.levels):
        grid = counts.reshape(256, 256)
        chances["levels", v] = _chi_square(counts)
        chances["high bits", v] = _chi_square(grid.sum(1))
        chances["low bits", v] = _chi_square(grid.sum(0))
    for name, (sums, pairs) in seen.products.items():
        for v, w in np.ndindex(sums.shape):
            if name != "variables" or v < w:
                z = sums[v, w] / np.sqrt(pairs)
                chances["correlation", name, v, w] = 2 * stats.norm.sf(abs(z))
    for name, counts in seen.joint.items():
        chances["joint", *name] = _independence(counts.reshape(16, 16))
    failed = {name: p for name, p in chances.items() if p <= ALARM}
    assert not failed


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
def test_no_step_repeats_the_draws_of_another(source, full_size):
    """The first four draws are 64 bits: 10^8 steps share them with chance 3e-4."""
    passes = 16 if full_size else 1
    for part in range(passes):
        vectors = []
        for noise, _ in _chunks(source, full_size):
            rows = noise[:4].astype(np.uint64).reshape(4, -1)
            vector = rows[0] | rows[1] << np.uint64(16) | rows[2] << np.uint64(32)
            vector |= rows[3] << np.uint64(48)
            vectors.append(vector[vector % np.uint64(passes) == part])
        vectors = np.sort(np.concatenate(vectors))
        assert not (vectors[1:] == vectors[:-1]).any()


@pytest.mark.slow
@pytest.mark.parametrize("second_lane", [0, 1])
def test_counting_keys_any_power_of_two_apart_are_independent(second_lane, full_size):
    """In each of four nibbles of their words; a perfect generator fails with chance 1e-4."""
    n = 2**24 if full_size else 2**20

    @partial(jax.jit, static_argnums=1)
    def words(first, lane):
        counter = first + jnp.arange(n, dtype=jnp.uint32)
        return jax.vmap(partial(rng.word, lane=lane))(_counted_keys(counter))

    here = np.asarray(words(jnp.uint32(0), 0))
    for lag in (2**k for k in range(32)):
        there = np.asarray(words(jnp.uint32(lag), second_lane))
        for nibble in (0, 12, 16, 28):
            pair = (here >> nibble & 15) * 16 + (there >> nibble & 15)
            table = np.bincount(pair, minlength=256).reshape(16, 16)
            assert _independence(table) > ALARM, f"lag {lag}, bits from {nibble}"


@pytest.mark.slow
@pytest.mark.parametrize("lane", range(4))
def test_each_bit_of_a_key_flips_each_bit_of_a_word_half_the_time(lane, full_size):
    """Within 5.5 standard deviations: by chance one of the 2,048 pairs fails in 1e-4."""
    n = 2**22 if full_size else 2**16
    data = np.random.default_rng(lane).integers(2**32, size=(n, 2), dtype=np.uint32)
    word = jax.jit(jax.vmap(partial(rng.word, lane=lane)))

    @jax.jit
    def flips(data, flip):
        changed = word(_keys(data)) ^ word(_keys(data ^ flip))
        return jnp.stack([jnp.sum(changed >> bit & 1) for bit in jnp.arange(32, dtype=jnp.uint32)])

    for half, bit in product(range(2), range(32)):
        flip = np.zeros(2, np.uint32)
        flip[half] = 2**bit
        z = (np.asarray(flips(data, flip[None])) - n / 2) / np.sqrt(n / 4)
        assert np.abs(z).max() < 5.5, f"bit {bit} of half {half}"


def _chi_square(counts):
    """Chance of counts as uneven as these if all are equally likely.

    Counts that are too even are no fault: a hash that is a bijection of a counter draws
    without replacement.
    """
    expected = counts.sum() / counts.size
    return stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), counts.size - 1)


def _independence(table):
    """Chance of a table as uneven as this if rows and columns are independent."""
    table = table[:, table.sum(0) > 0]
    expected = table.sum(1, keepdims=True) * table.sum(0, keepdims=True) / table.sum()
    freedom = (table.shape[0] - 1) * (table.shape[1] - 1)
    return stats.chi2.sf(((table - expected) ** 2 / expected).sum(), freedom)


def _data(key):
    return np.asarray(jax.random.key_data(key))


def _keys(data):
    return jax.random.wrap_key_data(data, impl=rng.IMPLEMENTATION)


def _random_keys(n):
    return _keys(np.random.default_rng(0).integers(2**32, size=(n, 2), dtype=np.uint32))


def _write_golden():
    seeds, episodes, steps = [0, 1, 2**32 - 1], [0, 1, 2**32 - 1], [0, 1, 19, 2**20]
    content = {
        "about": "Random numbers of lifedrift_jax, version 1; written by: python tests/test_rng.py",
        "jax": jax.__version__,
        "seeds": seeds,
        "episodes": episodes,
        "steps": steps,
        "records": records(seeds, episodes, steps),
    }
    GOLDEN.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    _write_golden()
