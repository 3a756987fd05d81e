"""Running moments of observations: in pieces, over a mapped axis, and at their limits."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from train.normalizer import BOUND, Normalizer, empty, merge, scale

ROWS = np.random.default_rng(0).normal([0, -3, 30], [1, 0.1, 5], (600, 3)).astype(np.float32)
merged, scaled = jax.jit(merge), jax.jit(scale)


def of(*pieces):
    """Moments of the pieces, one after another."""
    moments = empty(pieces[0].shape[-1])
    for piece in pieces:
        moments = merged(moments, piece)
    return moments


def assert_moments(moments, rows):
    rows = rows.astype(np.float64)
    assert moments.count == len(rows)
    assert np.allclose(moments.mean, rows.mean(0), rtol=1e-5, atol=1e-5)
    assert np.allclose(moments.square / moments.count, rows.var(0), rtol=1e-4)


@pytest.mark.parametrize("ends", [[], [1], [300], [1, 2, 599], [100, 200, 300, 400, 500]])
def test_moments_of_pieces_are_those_of_all_rows(ends):
    assert_moments(of(*np.split(ROWS, ends)), ROWS)


def test_moments_by_hand():
    moments = of(np.array([[1.0, 0.0], [3.0, 0.0]], np.float32), np.array([[8, 3]], np.float32))
    assert np.allclose(moments.mean, [4, 1])
    assert np.allclose(moments.square, [9 + 1 + 16, 1 + 1 + 4])


def test_pieces_split_over_a_mapped_axis_count_as_one():
    def over_devices(rows):
        split = jax.vmap(partial(merge, axis_name="device"), (None, 0), axis_name="device")
        return split(of(ROWS[:200]), rows.reshape(4, -1, 3))

    replicas = jax.jit(over_devices)(ROWS[200:])
    for device in range(4):
        assert_moments(jax.tree.map(lambda leaf, n=device: leaf[n], replicas), ROWS)


@pytest.mark.parametrize("x64", [False, True])
def test_all_moments_stay_float32(x64):
    with jax.enable_x64(x64):
        for moments in (empty(3), of(ROWS), of(ROWS, ROWS)):
            assert {(leaf.dtype, leaf.weak_type) for leaf in moments} == {
                (np.dtype(np.float32), False)
            }


@pytest.mark.parametrize("shape", [(), (5,), (2, 5)])
def test_with_nothing_seen_scaling_only_bounds(shape):
    features = np.random.default_rng(1).normal(0, 20, (*shape, 3)).astype(np.float32)
    assert np.array_equal(scaled(empty(3), features), np.clip(features, -BOUND, BOUND))


@pytest.mark.parametrize("shape", [(600, 3), (20, 30, 3)])
def test_scaled_features_have_mean_0_and_deviation_1(shape):
    result = np.asarray(scaled(of(ROWS), ROWS.reshape(shape)), np.float64).reshape(-1, 3)
    assert np.allclose(result.mean(0), 0, atol=1e-4)
    assert np.allclose(result.std(0), 1, atol=1e-4)


def test_scaling_by_hand_to_the_bound():
    moments = Normalizer(jnp.float32(4), jnp.float32([1, -2]), jnp.float32([16, 1]))
    features = jnp.float32([[3, -2], [1, -1], [1000, -1000]])
    # Deviations are sqrt(16 / 4) = 2 and sqrt(1 / 4) = 1/2.
    assert np.allclose(scaled(moments, features), [[1, 0], [0, 2], [10, -10]])


@pytest.mark.parametrize("value", [0.0, 0.1, -1e6])
def test_a_constant_feature_stays_finite_and_bounded(value):
    constant = np.full((100, 1), value, np.float32)
    moments = of(constant, constant, constant[:1])
    result, slope = jax.jit(jax.value_and_grad(lambda x: jnp.sum(scale(moments, x))))(constant)
    assert np.allclose(moments.mean, value, rtol=1e-6)
    assert np.isfinite(result)
    assert np.all(np.isfinite(slope))
    other = scaled(moments, np.array([[value + 1], [value - 1]], np.float32))
    assert np.all(np.abs(other) <= BOUND)
