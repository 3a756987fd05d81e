"""The observation of LifeStack: what an agent may know, as numbers in [-1, 1].

Everything follows from the task's text, the agent's own actions and the keys shown to it;
the value of any other key enters nowhere.
"""

import jax
import jax.numpy as jnp

from lifedrift_jax.life_stack import actions, graders, tables
from lifedrift_jax.life_stack.actions import bits
from lifedrift_jax.life_stack.types import WORD, Capacity, Params, State

GLOBAL_COLUMNS = (
    "time",  # steps left / horizon
    "deadline",  # steps left until the deadline / horizon, 1 if there is none
    "money",  # share of the budget left, 1 if there is none
    "earned",  # / best_return, at most 1
    "rollback",  # 1 if the last action can be rolled back
)
ROUTE_COLUMNS = (
    "open",  # neither closed nor completed
    "completed",
    "payoff",  # reward and milestones that it would pay / best_return, at most 1
    "actions_left",  # / T
    "cost",  # share of the money left, at most 1
    "blocked",  # by a key that is shown, or by its cost
    "unknown",  # has preconditions on keys that are not shown
    "serves",  # share of the keys of success that it sets right and no completed route did
    "closes",  # payoff of the open routes that it closes / best_return, at most 1
    "closing",  # steps left until a scheduled event closes it / horizon, 1 if none does
)
KEY_COLUMNS = (
    "inspectable",
    "stake",  # largest payoff of an open route with a precondition on it, if it is not shown
)


def names(capacity: Capacity) -> tuple[str, ...]:
    """Names of the observation's entries, in order."""
    routes = [f"route{i}_{x}" for x in ROUTE_COLUMNS for i in range(capacity.routes)]
    keys = [f"key{i}_{x}" for x in KEY_COLUMNS for i in range(capacity.keys)]
    reached = [f"milestone{i}_reached" for i in range(capacity.milestones)]
    # 1 if the fact is known to hold.
    facts = [f"fact{i}" for i in range(WORD * capacity.words)]
    return (*GLOBAL_COLUMNS, *routes, *keys, *reached, *facts)


def observe(state: State, params: Params, capacity: Capacity) -> jax.Array:
    """[F] float32 in [-1, 1], named by `names`."""
    routes = _routes(state, params, capacity)
    parts = [
        jnp.stack(_globals(state, params)),
        *routes.values(),
        *_keys(state, routes, params, capacity),
        bits(state.world.reached, capacity.milestones).astype(jnp.float32),
        bits(state.world.facts & state.shown, WORD).astype(jnp.float32).reshape(-1),
    ]
    return jnp.clip(jnp.concatenate(parts), -1, 1)


def payoffs(state: State, params: Params) -> jax.Array:
    """[R] float, what completing each route pays: its reward and milestones not yet reached.

    Milestones count if the route unlocks them or writes the fact that they wait for.
    """
    count = params.milestones.reward.shape[0]
    written = params.routes.writes.sets[:, None] & params.milestones.facts[None]
    due = bits(params.routes.unlocks, count) | jnp.any(written != 0, axis=-1)
    due = due & ~bits(state.world.reached, count)[None]
    rewards = jnp.where(due, params.milestones.reward[None], 0)
    return params.routes.reward + jnp.sum(rewards, axis=-1)


def open_routes(state: State, params: Params) -> jax.Array:
    """[R] bool: there, and neither closed nor completed."""
    return actions.left(state.world, params) != 0


def blocked(state: State, params: Params) -> jax.Array:
    """[R] bool: a precondition on a key that is shown does not hold, or money is short."""
    unmet = (state.world.facts & state.shown)[None] & params.routes.forbidden
    short = graders.spent(state.world, params) + params.routes.cost > params.budget
    return jnp.any(unmet != 0, axis=-1) | short


def _globals(state: State, params: Params) -> list[jax.Array]:
    """() float32 columns, in the order of GLOBAL_COLUMNS."""
    per_step = 1 / params.max_steps.astype(jnp.float32)
    has_deadline = params.deadline < tables.NO_DEADLINE
    until = jnp.maximum(params.deadline - state.step, 0).astype(jnp.float32) * per_step
    earned = graders.score(state.world, params)
    return [
        (params.max_steps - state.step).astype(jnp.float32) * per_step,
        jnp.where(has_deadline, jnp.minimum(until, 1), 1),
        _money_left(state, params).astype(jnp.float32),
        earned.astype(jnp.float32),
        (state.rollback == tables.MAY_ROLL_BACK).astype(jnp.float32),
    ]


def _money_left(state: State, params: Params) -> jax.Array:
    """() float in [0, 1], share of the budget."""
    share = graders.spent(state.world, params) * (1 / jnp.maximum(params.budget, 1e-6))
    return jnp.clip(1 - share, 0, 1)


def _routes(state: State, params: Params, capacity: Capacity) -> dict[str, jax.Array]:
    """[R] columns, in the order of ROUTE_COLUMNS."""
    routes, world = params.routes, state.world
    per_best = 1 / params.best_return
    open_ = open_routes(state, params)
    payoff = jnp.where(open_, payoffs(state, params) * per_best, 0)
    left = bits(actions.left(world, params), capacity.types)
    money = params.budget - graders.spent(world, params)
    rivals = jnp.where(bits(routes.closes, capacity.routes), payoff[None], 0)
    columns = {
        "open": open_,
        "completed": bits(world.completed, capacity.routes),
        "payoff": payoff,
        "actions_left": jnp.sum(left.astype(jnp.float32), axis=-1) * (1 / capacity.types),
        "cost": jnp.minimum(routes.cost * (1 / jnp.maximum(money, 1e-6)), 1),
        "blocked": blocked(state, params),
        "unknown": jnp.any(routes.forbidden & ~state.shown[None] != 0, axis=-1),
        "serves": _serves(state, params, capacity),
        "closes": jnp.sum(rivals, axis=-1),
        "closing": _closing(state, params, capacity),
    }
    always = ("open", "completed")
    numbers = {name: column.astype(jnp.float32) for name, column in columns.items()}
    return {n: x if n in always else jnp.where(open_, x, 0) for n, x in numbers.items()}


def _serves(state: State, params: Params, capacity: Capacity) -> jax.Array:
    """[R] float32, share of the keys of success."""
    writes, wanted = params.routes.writes, params.success[0]
    spoils = jnp.any(writes.sets & params.success[None] != 0, axis=-1)
    sets_right = jnp.where(spoils, jnp.uint32(0), writes.clears[:, 0] & wanted)
    done = jnp.where(bits(state.world.completed, capacity.routes), sets_right, jnp.uint32(0))
    served = jax.lax.reduce(done, jnp.uint32(0), jax.lax.bitwise_or, (0,))
    keys = jax.lax.population_count(wanted).astype(jnp.float32)
    counts = jax.lax.population_count(sets_right & ~served).astype(jnp.float32)
    return counts * (1 / jnp.maximum(keys, 1))


def _closing(state: State, params: Params, capacity: Capacity) -> jax.Array:
    """[R] float32, share of the horizon until a scheduled event closes a route."""
    events = params.events
    coming = jnp.where(events.step >= state.step, events.step - state.step, params.max_steps)
    closes = bits(events.closes, capacity.routes)  # [E, R]
    steps = jnp.min(jnp.where(closes, coming[:, None], params.max_steps), axis=0)
    return steps.astype(jnp.float32) * (1 / params.max_steps.astype(jnp.float32))


def _keys(
    state: State, routes: dict[str, jax.Array], params: Params, capacity: Capacity
) -> list[jax.Array]:
    """[K] float32 columns, in the order of KEY_COLUMNS."""
    unseen = bits(actions.inspectable(state), capacity.keys)
    asked = bits(params.routes.forbidden[:, 0], capacity.keys)  # [R, K]
    stakes = jnp.where(asked, jnp.maximum(routes["payoff"], 0)[:, None], 0)
    stake = jnp.where(unseen, jnp.max(stakes, axis=0), 0)
    return [unseen.astype(jnp.float32), stake.astype(jnp.float32)]
