import jax.numpy as jnp
import numpy as np
import pytest

from lifedrift_jax.names import checked_index, unknown

FRUIT = ("apple", "pear", "fig")


@pytest.mark.parametrize("value", ["pear", 1, np.int32(1), np.array(1), jnp.int32(1)])
def test_a_name_or_an_integer_gives_the_index(value):
    assert checked_index("fruit", value, FRUIT) == 1


@pytest.mark.parametrize(
    "value", ["1", "plum", 3, -1, 1.0, True, np.bool_(True), jnp.bool_(True), None, [1]]
)
def test_anything_else_is_refused_with_the_legal_ones(value):
    with pytest.raises(ValueError, match=r"no fruit .*: use one of .*apple.*pear.*fig"):
        checked_index("fruit", value, FRUIT)


def test_an_error_names_the_closest_and_lists_all():
    message = str(unknown("fruit", "aple", FRUIT))
    assert message == "no fruit 'aple' (did you mean 'apple'?): use one of apple, pear, fig"
    assert str(unknown("fruit", "x", iter(FRUIT))) == "no fruit 'x': use one of apple, pear, fig"
