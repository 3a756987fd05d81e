"""The order of samples: a permutation for every count, uniform, reproducible, not sorted."""

from functools import partial

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from train import shuffle
from train.shuffle import shuffled

ALARM = 1e-6  # chance at which one statistic of perfect orders fails
SIZE, KEYS = 256, 12_800  # every place of every number is expected 50 times
SORTED = [(8192, False), (10_240, False), (8191, True), (240, True), (17 * 65_537, True)]

compiled = jax.jit(shuffled, static_argnums=1)


def order(count, seed=0):
    return compiled(jax.random.key(seed), count)


def assert_every_number_once(numbers, count):
    assert numbers.dtype == np.int32
    assert np.array_equal(np.sort(numbers), np.arange(count))


@pytest.mark.parametrize("count", [1, 7, 97, 256, 8192, 10_240, 17 * 65_521])
def test_every_number_comes_once(count):
    assert_every_number_once(order(count), count)


@given(st.integers(1, 150), st.integers(16, 150), st.integers(0, 2**32 - 1))
@settings(max_examples=5, deadline=None)
def test_every_number_comes_once_for_any_factors_and_key(rows, columns, seed):
    assert_every_number_once(order(rows * columns, seed), rows * columns)


@pytest.mark.parametrize("count", [97, 256, 10_240])
def test_a_key_gives_one_order_and_another_key_another(count):
    first, again, other = (np.asarray(order(count, seed)) for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    # Two independent orders agree in 1 place on average.
    assert np.sum(first == other) < 12
    assert np.sum(first == np.arange(count)) < 12


@pytest.mark.parametrize("count", [97, 256])
def test_the_order_and_its_type_are_the_same_with_64_bits(count):
    expected = order(count)
    with jax.enable_x64(True):
        wide = order(count)
    assert wide.dtype == np.int32
    assert np.array_equal(wide, expected)


@pytest.mark.parametrize(("count", "sorts"), SORTED)
def test_only_a_count_without_two_fitting_factors_is_sorted(count, sorts):
    program = compiled.lower(jax.random.key(0), count)
    assert ("sort" in program.as_text()) is sorts


# Uniformity.


def many_orders():
    """Orders of SIZE numbers, one a key: [KEYS, SIZE]."""
    keys = jax.random.split(jax.random.key(1), KEYS)
    return np.asarray(jax.jit(jax.vmap(partial(shuffled, count=SIZE)))(keys))


@pytest.fixture(scope="module")
def orders():
    return many_orders()


def chance_of_places(orders):
    """Chance of a table number x place as uneven as this among uniform orders.

    Rows and columns of the table both have fixed sums, as each order is a permutation, so
    the statistic times (n - 1) / n is chi-square with (n - 1)**2 degrees of freedom.
    """
    n = orders.shape[1]
    cells = np.arange(n)[None] * n + orders
    counts = np.bincount(cells.ravel(), minlength=n * n)
    expected = len(orders) / n
    statistic = np.sum((counts - expected) ** 2) / expected
    return stats.chi2.sf(statistic * (n - 1) / n, (n - 1) ** 2)


def chance_of_distances(orders, lag):
    """Smallest chance over places i of the distances from entry i to entry i + lag.

    The distance modulo n is uniform on 1 .. n - 1. Times the number of places tested.
    """
    n = orders.shape[1]
    distances = (orders[:, lag:] - orders[:, :-lag]) % n
    chances = [
        stats.chisquare(np.bincount(column, minlength=n)[1:]).pvalue for column in distances.T
    ]
    return min(chances) * len(chances)


def test_every_number_is_as_likely_in_every_place(orders):
    assert chance_of_places(orders) > ALARM


@pytest.mark.parametrize("lag", [1, 2, 16])
def test_neighbours_are_any_distance_apart(orders, lag):
    assert chance_of_distances(orders, lag) > ALARM


def test_a_single_round_is_told_from_a_uniform_order(monkeypatch):
    monkeypatch.setattr(shuffle, "ROUNDS", 1)
    orders = many_orders()
    assert chance_of_distances(orders, 1) < ALARM


def test_the_order_is_the_same_alone_and_in_a_batch(orders):
    keys = jax.random.split(jax.random.key(1), KEYS)
    assert np.array_equal(orders[41], compiled(keys[41], SIZE))
