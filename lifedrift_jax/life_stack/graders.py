"""What a LifeStack episode has earned and spent, and its score."""

import jax
import jax.numpy as jnp

from lifedrift_jax.life_stack.actions import bits
from lifedrift_jax.life_stack.types import Params, World


def earned(completed: jax.Array, reached: jax.Array, params: Params) -> jax.Array:
    """() float, final rewards of a set of routes and rewards of a set of milestones."""
    routes = _total(completed, params.routes.reward)
    return routes + _total(reached, params.milestones.reward)


def spent(world: World, params: Params) -> jax.Array:
    """() float, the costs of the completed routes."""
    return _total(world.completed, params.routes.cost)


def score(world: World, params: Params) -> jax.Array:
    """() float in [0, 1]: what is earned, as a share of the best expected return."""
    total = earned(world.completed, world.reached, params)
    return jnp.clip(total * (1 / params.best_return), 0, 1)


def _total(members: jax.Array, values: jax.Array) -> jax.Array:
    """() the sum of `values` [n] over a set, in the order of the members."""
    holds, zero = bits(members, values.shape[0]), jnp.zeros_like(values[0])
    total = zero
    for row in range(values.shape[0]):
        total = total + jnp.where(holds[row], values[row], zero)
    return total
