"""Spaces: what they contain, and that samples lie inside."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lifedrift_jax.spaces import Box, Discrete

KEY = jax.random.key(0, impl="threefry2x32")
UNIT = Box(0.0, 1.0, (2,))


@pytest.mark.parametrize("x", [0, 5, np.int64(3), np.uint8(2), jnp.int32(4)])
def test_discrete_contains_integers_in_range(x):
    assert Discrete(6).contains(x)


@pytest.mark.parametrize("x", [-1, 6, 2**31 - 1, 2.0, np.float32(1), True, np.array([1]), jnp.nan])
def test_discrete_refuses_other_values_shapes_and_dtypes(x):
    assert not Discrete(6).contains(x)


@pytest.mark.parametrize("x", [[0.0, 1.0], [0.5, 0.25]])
def test_box_contains_its_bounds_and_what_lies_between(x):
    assert UNIT.contains(np.float32(x))


@pytest.mark.parametrize(
    "x",
    [
        np.float32([0.5, 1.1]),
        np.float32([-1e-6, 0.5]),
        np.float32([np.nan, 0.5]),
        np.float32([np.inf, 0.5]),
        np.float32([0.5]),
        np.float32([[0.5, 0.5]]),
        np.float32(0.5),
        np.float16([0.5, 0.5]),
        np.int32([0, 1]),
    ],
)
def test_box_refuses_other_values_shapes_and_dtypes(x):
    assert not UNIT.contains(x)


def test_box_refuses_float64_also_under_x64():
    with jax.enable_x64(True):
        assert not UNIT.contains(np.float64([0.5, 0.5]))
        assert UNIT.contains(np.float32([0.5, 0.5]))


@pytest.mark.parametrize("x64", [False, True])
def test_contains_works_in_compiled_and_batched_code(x64):
    with jax.enable_x64(x64):
        inside = jax.jit(jax.vmap(UNIT.contains))(jnp.float32([[0, 1], [0, 2]]))
        assert inside.tolist() == [True, False]
        inside = jax.jit(jax.vmap(Discrete(3).contains))(jnp.int32([-1, 0, 2, 3]))
        assert inside.tolist() == [False, True, True, False]


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("space", [Discrete(6), UNIT, Box(-2.0, 3.0, ()), Box(-1.0, 1.0, (2, 3))])
def test_samples_lie_inside_and_are_the_same_with_x64_on_and_off(space, x64):
    samples = jax.vmap(space.sample)(jax.random.split(KEY, 256))
    with jax.enable_x64(x64):
        again = jax.vmap(space.sample)(jax.random.split(KEY, 256))
        assert jax.vmap(space.contains)(again).all()
    assert again.dtype == samples.dtype == space.dtype
    assert np.array_equal(samples, again)


def test_samples_reach_the_whole_space():
    keys = jax.random.split(KEY, 1000)
    assert set(jax.vmap(Discrete(6).sample)(keys).tolist()) == set(range(6))
    box = jax.vmap(Box(-2.0, 3.0, ()).sample)(keys)
    assert box.min() < -1.9
    assert box.max() > 2.9


def test_spaces_compare_by_value():
    assert Discrete(3) == Discrete(3) != Discrete(4)
    assert hash(Box(0.0, 1.0, (2,))) == hash(UNIT)
    assert Discrete(3).shape == ()
