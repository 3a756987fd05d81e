"""One episode of LifeStack as plain numbers, for `describe`."""

import jax
import jax.numpy as jnp

from lifedrift_jax.core import one_episode
from lifedrift_jax.life_stack import actions, graders, labels
from lifedrift_jax.life_stack.labels import members
from lifedrift_jax.life_stack.types import Params, State

_COUNTS = (
    *("step", "max_steps", "deadline", "rollback", "last_action", "last_outcome"),
    *("is_success", "is_failure", "is_over"),
)
_SETS = ("completed", "closed", "reached", "fired")


@jax.jit
def _packed(state: State, params: Params) -> dict[str, jax.Array]:
    """What is read of an episode, in few arrays: fetching fields one by one is slow."""
    world, routes = state.world, params.routes
    ends = {name: getattr(actions, name)(world, params) for name in ("is_success", "is_failure")}
    counts = vars(params) | vars(state) | ends | {"is_over": actions.is_over(state, params)}
    sets = vars(world) | vars(state)
    left = actions.left(world, params)
    earned = graders.earned(world.completed, world.reached, params)
    money = [graders.spent(world, params), params.budget]
    return {
        "counts": jnp.stack([counts[name].astype(jnp.int32) for name in _COUNTS]),
        "sets": jnp.stack([sets[name] for name in _SETS]),
        "facts": jnp.stack([world.facts, state.shown, params.failure, params.missed.sets]),
        "routes": jnp.stack([routes.types, left, routes.closes, routes.unlocks]),
        "forbidden": routes.forbidden,
        "rewards": jnp.concatenate([routes.reward, routes.cost, params.milestones.reward]),
        "totals": jnp.stack([*money, earned, params.best_return]),
    }


class Seen:
    """One episode, read: plain numbers, and sets as lists of their members."""

    def __init__(self, state: State, params: Params) -> None:
        packed = jax.device_get(_packed(one_episode(state), params))
        self.labels = labels.of(params)
        self.count = dict(zip(_COUNTS, packed["counts"].tolist(), strict=True))
        self.sets = {name: members(x) for name, x in zip(_SETS, packed["sets"], strict=True)}
        facts, shown, self.failure, self.missed = packed["facts"]
        self.facts, self.shown_facts = facts, facts & shown
        columns = ([members(row) for row in column] for column in packed["routes"])
        self.types, self.left, self.closes, self.unlocks = columns
        self.forbidden = packed["forbidden"]
        # Shortest decimals: 0.8, where the float32 is 0.800000011920929.
        rewards = [float(str(x)) for x in packed["rewards"]]
        count = len(self.types)
        self.final_reward, self.cost = rewards[:count], rewards[count : 2 * count]
        self.milestone_reward = rewards[2 * count :]
        self.spent, self.budget, self.earned, self.best = (float(str(x)) for x in packed["totals"])
        held = dict(self.labels.facts[fact] for fact in members(self.shown_facts))
        self.known = {key: held[key] for key in self.labels.keys.values() if key in held}

    def status(self, route: int) -> str:
        """Of a route: open, completed or closed."""
        for name in ("completed", "closed"):
            if route in self.sets[name]:
                return name
        return "open"
