"""Best expected return of generated tasks: dynamic programming over sets of completed routes.

Value V(t, S, k): at step t, the routes in S completed, and k what is known of each hidden key.
One route after the other is best: nothing ever opens with time, so an action on a route that
completes later may as well come right before it (the usual exchange of two jobs). A route with
a hidden precondition takes a single action, so it is never half done. A blind attempt that
fails closes the route, unless it is rolled back in the next step. Checked against
`beliefs.solve`, which assumes nothing of this.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lifedrift_jax.core import fence

UNKNOWN, FALSE, TRUE, BURNT = range(4)  # what is known of a hidden key


class Deal(NamedTuple):
    """A generated task, as this planner sees it: n routes, H hidden keys.

    Route i sets key of success i % 2, if i is below the number of real routes. For i below H it
    needs hidden key i and takes a single action; route H + i makes hidden key i true.
    """

    actions: jax.Array  # [n] int32, actions a route takes, 1 or 2
    value: jax.Array  # [n] float, what it pays
    closes: jax.Array  # [n, n] bool, a route (row) closes another (column)
    until: jax.Array  # [n] int32, an event closes it at the start of this step
    chance: jax.Array  # [H] float, that a hidden key is true at the start
    horizon: jax.Array  # () int32


def best_return(deal: Deal, real: int, max_horizon: int, inspecting: bool = True) -> jax.Array:
    """() float, the best expected return.

    Args:
        deal: the task; H at most 2.
        real: how many of its routes are real.
        max_horizon: the largest horizon there may be.
        inspecting: False = of play that never inspects.
    """
    n, keys = deal.value.shape[0], deal.chance.shape[0]
    has = (np.arange(2**n)[None] >> np.arange(n)[:, None]) & 1 == 1  # [n, 2^n]
    ended = has[0:real:2].any(0) & has[1:real:2].any(0)
    # Last axis: the rollback is left, or used. With one hidden key a second is worth nothing.
    rollbacks = 2 if keys > 1 else 1
    shape = (2**n, *(4,) * keys, rollbacks)
    sets = (2**n, *(1,) * (keys + 1))
    shut = [_shut(deal, has, route).reshape(sets) for route in range(n)]
    last = jnp.minimum(deal.until, deal.horizon)

    def stage(following: tuple[jax.Array, jax.Array], step: jax.Array):
        one, two = following
        value = one  # to wait
        for route in range(n):
            if route < keys:
                gained = _blindly(deal, route, one, two, n)
            else:
                after = jnp.where(deal.actions[route] == 1, one, two)
                gained = deal.value[route] + _completed(after, route, n)
                gained = _opened(gained, route - keys) if route < 2 * keys else gained
            fits = ~shut[route] & (step + deal.actions[route] <= last[route])
            value = fence(step >= 0, jnp.where(fits, jnp.maximum(value, gained), value))
        for key in range(keys if inspecting else 0):
            value = jnp.maximum(value, _inspect(deal, key, one))
        return (jnp.where(ended.reshape(sets) | (step >= deal.horizon), 0, value), one), None

    nothing = jnp.zeros(shape, deal.value.dtype)
    steps = jnp.arange(max_horizon - 1, -1, -1, dtype=jnp.int32)
    (value, _), _ = jax.lax.scan(stage, (nothing, nothing), steps)
    return value[(0,) * value.ndim]


def _shut(deal: Deal, has: np.ndarray, route: int) -> jax.Array:
    """[2^n] bool: completed already, or closed by a route that is."""
    shut = jnp.asarray(has[route])
    for other in range(len(has)):
        shut = shut | (has[other] & deal.closes[other, route])
    return shut


def _blindly(deal: Deal, route: int, one: jax.Array, two: jax.Array, n: int) -> jax.Array:
    """Value of taking a route that needs a hidden key; -inf where the key is false."""
    chance = deal.chance[route]
    true = deal.value[route] + _known(_completed(one, route, n), route, TRUE)
    rolled_back = _if_left(_known(_used(two), route, FALSE))
    failed = jnp.maximum(_known(one, route, BURNT), rolled_back)
    blind = chance * true + (1 - chance) * failed
    never = jnp.full_like(blind, -jnp.inf)
    return _by_knowledge((blind, never, true, never), route)


def _inspect(deal: Deal, key: int, following: jax.Array) -> jax.Array:
    """Value of inspecting a key; -inf where it is known."""
    chance = deal.chance[key]
    seen = chance * _known(following, key, TRUE) + (1 - chance) * _known(following, key, FALSE)
    never = jnp.full_like(seen, -jnp.inf)
    return _by_knowledge((seen, never, never, never), key)


def _opened(value: jax.Array, key: int) -> jax.Array:
    """The value once a key was made true, whatever it was; a burnt route stays closed."""
    true = _known(value, key, TRUE)
    return _by_knowledge((true, true, true, _known(value, key, BURNT)), key)


def _completed(value: jax.Array, route: int, n: int) -> jax.Array:
    """The value at S with a route added, at each S."""
    split = value.reshape(2 ** (n - 1 - route), 2, 2**route, *value.shape[1:])
    return jnp.broadcast_to(split[:, 1:], split.shape).reshape(value.shape)


def _known(value: jax.Array, key: int, knowledge: int) -> jax.Array:
    """The value where this is known of a key; that axis has length 1."""
    return jax.lax.index_in_dim(value, knowledge, 1 + key)


def _by_knowledge(values: tuple[jax.Array, ...], key: int) -> jax.Array:
    return jnp.concatenate(values, axis=1 + key)


def _used(value: jax.Array) -> jax.Array:
    """The value once the rollback was used, whether it was or not."""
    last = jax.lax.index_in_dim(value, value.shape[-1] - 1, value.ndim - 1)
    return jnp.broadcast_to(last, value.shape)


def _if_left(value: jax.Array) -> jax.Array:
    """A value of rolling back; -inf where the rollback was used already."""
    left = np.arange(value.shape[-1]) == 0
    return jnp.where(left, value, -jnp.inf)
