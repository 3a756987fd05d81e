"""Baseline policies of LifeStack: greedy on what routes pay, and the best play there is."""

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lifedrift_jax.core import Policy
from lifedrift_jax.life_stack import LifeStack, Params
from lifedrift_jax.life_stack.beliefs import Plan, solve
from lifedrift_jax.life_stack.features import GLOBAL_COLUMNS, ROUTE_COLUMNS
from lifedrift_jax.life_stack.search import states_of


@lru_cache
def greedy() -> Policy:
    """The open route that pays most for each action it still takes; waits if there is none.

    What a route pays is its reward and the milestones that it brings, whatever else follows.
    Routes that a shown key or the budget blocks are left out. It never inspects.
    """

    def act(key: jax.Array, obs: jax.Array, mask: jax.Array, carry: Any) -> tuple[jax.Array, Any]:
        params: Params = carry
        routes, keys = params.routes.types.shape[0], params.keys.shape[0]
        wanted = mask[: -keys - 2].reshape(routes, -1)
        left = jnp.sum(wanted.astype(jnp.float32), axis=1)
        worth = _column(obs, "payoff", routes) / jnp.maximum(left, 1)
        possible = (left > 0) & (_column(obs, "blocked", routes) == 0)
        worth = jnp.where(possible, worth, -jnp.inf)
        route = jnp.argmax(worth)
        chosen = route * wanted.shape[1] + jnp.argmax(wanted[route])
        wait = mask.shape[0] - 2
        return jnp.where(jnp.any(possible), chosen, wait).astype(jnp.int32), carry

    return Policy("greedy", lambda key, params: params, act)


def optimal(env: LifeStack, params: Params) -> Policy:
    """Best play of one task without hindsight, found by exact search; for these params only.

    The same object for the same task, so that it is compiled once.

    Raises:
        ValueError: the search would have to visit too many states.
    """
    content = tuple(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(params))
    if (env, content) not in _OPTIMAL:
        solution = solve(params, env.capacity)
        if not solution.exact:
            raise ValueError(
                f"optimal: the task has more than {solution.num_states:,} states, which is too "
                "many to search; use greedy or a trained policy"
            )
        _OPTIMAL[env, content] = _planned(env, params, solution.plan)
    return _OPTIMAL[env, content]


_OPTIMAL: dict[Any, Policy] = {}


def _planned(env: LifeStack, params: Params, plan: Plan) -> Policy:
    """The policy that follows a plan; where it ends, it waits."""
    states = states_of(plan.rows, params, env.capacity)
    looks = np.asarray(jax.jit(jax.vmap(env.observe, (0, None)))(states, params))
    actions, children = np.asarray(plan.action), np.asarray(plan.children)

    def act(key: jax.Array, obs: jax.Array, mask: jax.Array, node: jax.Array):
        following = jnp.asarray(children)[node]  # [B]
        # Observations of a plan are of another program: the nearest, should a bit differ.
        distance = jnp.sum(jnp.abs(jnp.asarray(looks)[following] - obs[None]), axis=1)
        branch = jnp.argmin(jnp.where(following >= 0, distance, jnp.inf))
        found = following[branch]
        wait = jnp.int32(mask.shape[0] - 2)
        after = jnp.where(found >= 0, found, node)
        return jnp.where(found >= 0, jnp.asarray(actions)[after], wait), after

    return Policy("optimal", lambda key, params: jnp.int32(0), act)


def _column(obs: jax.Array, name: str, routes: int) -> jax.Array:
    """[R], a column of the routes in an observation."""
    first = len(GLOBAL_COLUMNS) + ROUTE_COLUMNS.index(name) * routes
    return obs[first : first + routes]
