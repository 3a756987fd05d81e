"""Baseline policies of TaskFlow: the source's heuristic of three parts, and simple rules.

The heuristic picks an item, then what to do with it:

* AETHER scores the items on five dimensions, with weights that move in every step by what
  the last choice earned against the episode's rewards so far;
* RAPTOR picks the action type from resources, risk and deadline;
* AWFRO-X sets items that nothing can be done for aside, and postpones those that time
  would help.

Each can be left out, to see what it brings.
"""

from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp

from lifedrift_jax.baselines.task_flow_view import Seen, read, state_from_observation
from lifedrift_jax.core import Policy
from lifedrift_jax.planning.look_ahead import look_ahead
from lifedrift_jax.task_flow import SLOTS, TASKS, Params, TaskFlow
from lifedrift_jax.task_flow.actions import join
from lifedrift_jax.task_flow.tables import DEFER, DELEGATE, EXECUTE, OPTIMIZE

# AETHER: dimensions, and how their weights move.
DIMENSIONS = ("priority", "urgency", "certainty", "value", "fit")
MOMENTUM = 0.8  # share of the last move that goes into the next
LEARNING_RATE = 0.1  # of the weights, per unit of advantage and of dimension
ADVANTAGE_LIMIT = 2.0  # standard deviations
# The planner's: (actions kept, more samples of each).
PLANNER_ROUNDS = ((48, 8), (16, 16), (6, 32), (3, 64))


class Numbers(NamedTuple):
    """What AETHER and RAPTOR go by.

    Attributes:
        weights: of the DIMENSIONS at the start.
        critical: share of energy or budget below which nothing is executed.
        risky: chance of failure from which an item is optimized first.
        hopeless: chance of failure from which it is handed over.
        postponable: chance of failure from which it is deferred on its last day.
        patience: steps; a deadline at least so far off leaves time to wait for resources.
        spare: steps that must be left for a deferral on the last day.
    """

    weights: tuple[float, ...]
    critical: float
    risky: float
    hopeless: float
    postponable: float
    patience: float
    spare: float


# The heuristic's, the same in all tiers, chosen with the source's score table in sight.
NUMBERS = Numbers((0.5, 4.0, 0.5, 0.5, 0.5), 0.1, 0.09, 0.7, 0.7, 3, 0)
# What the planner plays on with: tuned for the grade, tier by tier, by the cross-entropy
# method (14 generations of 48 samples, 2,048 episodes each).
TUNED = {
    "easy": Numbers((0.1, 4.51, 0.39, 0.06, 0.73), 0.03, 0.17, 0.72, 0.64, 2.76, 2.87),
    "medium": Numbers((0.12, 0.92, 1.08, 0.21, 1.4), 0.09, 0.31, 0.6, 1.31, 2.88, 1.38),
    "hard": Numbers((0.01, 3.49, 0.09, 0.04, 1.6), 0.06, 0.17, 0.53, 0.22, 3.36, 1.92),
}


class Carry(NamedTuple):
    """What the heuristic remembers.

    Attributes:
        params: the episode's params.
        numbers: what RAPTOR goes by.
        weights, velocity: [5] AETHER's, by DIMENSIONS.
        choice: [5] dimensions of the item chosen last, less the mean of those in the queue.
        earned: () sum of rewards at the last choice.
        rewards: () how many rewards the episode has given.
        mean, square: () their mean, and sum of squared deviations from it.
    """

    params: Params
    numbers: Numbers
    weights: jax.Array
    velocity: jax.Array
    choice: jax.Array
    earned: jax.Array
    rewards: jax.Array
    mean: jax.Array
    square: jax.Array


@lru_cache
def heuristic(
    aether: bool = True, raptor: bool = True, awfro_x: bool = True, tuned: bool = False
) -> Policy:
    """The source's heuristic, with or without its parts.

    Args:
        aether: score items; without it, the candidate of the lowest slot is chosen.
        raptor: pick the action type; without it, execute what is affordable, delegate what
            is not.
        awfro_x: leave late items alone while others are pending, and postpone; without it,
            late items are candidates like all others, and nothing is ever deferred.
        tuned: go by the tier's TUNED numbers instead of NUMBERS.
    """

    def init(key: jax.Array, params: Params) -> Carry:
        numbers = _tuned(params) if tuned else NUMBERS
        weights = jnp.asarray(numbers.weights, params.energy.dtype)
        zero, zeros = jnp.zeros_like(params.energy), jnp.zeros_like(weights)
        return Carry(params, numbers, weights, zeros, zeros, zero, zero, zero, zero)

    def act(
        key: jax.Array, obs: jax.Array, mask: jax.Array, carry: Carry
    ) -> tuple[jax.Array, Carry]:
        seen = read(obs, mask, carry.params)
        late, pending = seen.item["late"] > 0, seen.item["pending"] > 0
        candidates = pending | late & ~(jnp.any(pending) & awfro_x)
        dimensions = _dimensions(seen)
        carry = _learnt(carry, seen.world["reward_sum"])
        scores = carry.weights @ dimensions if aether else jnp.zeros(SLOTS, obs.dtype)
        slot = jnp.argmax(jnp.where(candidates, scores, -jnp.inf)).astype(jnp.int32)
        count = jnp.maximum(jnp.sum(candidates), 1).astype(obs.dtype)
        mean = jnp.sum(jnp.where(candidates, dimensions, 0), axis=-1) / count
        carry = carry._replace(choice=dimensions[:, slot] - mean)
        if raptor:
            kind = _routed(seen, slot, awfro_x, carry.numbers)
        else:
            kind = _first_legal(seen, slot, (EXECUTE, DELEGATE))
        return join(kind, slot), carry

    left_out = [
        name
        for name, kept in (("aether", aether), ("raptor", raptor), ("awfro_x", awfro_x))
        if not kept
    ]
    words = ["tuned"] if tuned else []
    words += ["heuristic", *(f"without_{part}" for part in left_out)]
    return Policy("_".join(words), init, act)


def without_aether() -> Policy:
    """The heuristic, its items taken in the order of their slots."""
    return heuristic(aether=False)


def without_raptor() -> Policy:
    """The heuristic, executing whatever is affordable."""
    return heuristic(raptor=False)


def without_awfro_x() -> Policy:
    """The heuristic, late items not culled, nothing deferred."""
    return heuristic(awfro_x=False)


@lru_cache
def earliest_deadline() -> Policy:
    """Execute the pending item of the earliest deadline; delegate what is not affordable."""
    return _by_deadline("earliest_deadline", (EXECUTE, DELEGATE))


@lru_cache
def delegate_all() -> Policy:
    """Delegate everything, the earliest deadline first."""
    return _by_deadline("delegate_all", (DELEGATE,))


def _tuned(params: Params) -> Numbers:
    """The TUNED numbers of the params' tier, arrays."""
    rows = [TUNED[tier] for tier in TASKS]
    columns = jax.tree.map(lambda *x: jnp.asarray(x, params.energy.dtype), *rows)
    return jax.tree.map(lambda column: column[params.tier], columns)


def _dimensions(seen: Seen) -> jax.Array:
    """[5, 12] what AETHER looks at, in the order of DIMENSIONS, each in [-1, 1]."""
    item, world = seen.item, seen.world
    tiny = jnp.finfo(item["value"].dtype).tiny
    energy = jnp.minimum(item["energy_cost"] / jnp.maximum(world["energy"], tiny), 1)
    budget = jnp.minimum(item["budget_cost"] / jnp.maximum(world["budget"], tiny), 1)
    dimensions = {
        "priority": item["priority"],
        "urgency": 1 / jnp.maximum(seen.deadline, 1),
        "certainty": -item["uncertainty"],
        "value": item["value"],
        "fit": 1 - (energy + budget) / 2,
    }
    return jnp.stack([dimensions[name] for name in DIMENSIONS])


def _learnt(carry: Carry, earned: jax.Array) -> Carry:
    """The carry after the reward of the last choice, which `earned` minus the last is.

    The advantage is the reward's distance from the mean of those before, in standard
    deviations; the first two rewards of an episode teach nothing.
    """
    reward = earned - carry.earned
    deviation = reward - carry.mean
    spread = jnp.sqrt(carry.square / jnp.maximum(carry.rewards - 1, 1))
    known = (carry.rewards >= 2) & (spread > 0)
    advantage = jnp.where(known, deviation / jnp.where(known, spread, 1), 0)
    advantage = jnp.clip(advantage, -ADVANTAGE_LIMIT, ADVANTAGE_LIMIT)
    velocity = MOMENTUM * carry.velocity + (1 - MOMENTUM) * advantage * carry.choice
    # The call before the first choice has no reward to count.
    counted = jnp.any(carry.choice != 0).astype(reward.dtype)
    rewards = carry.rewards + counted
    mean = carry.mean + counted * deviation / jnp.maximum(rewards, 1)
    return carry._replace(
        weights=jnp.maximum(carry.weights + LEARNING_RATE * velocity, 0),
        velocity=velocity,
        earned=earned,
        rewards=rewards,
        mean=mean,
        square=carry.square + counted * deviation * (reward - mean),
    )


def _routed(seen: Seen, slot: jax.Array, may_defer: bool, numbers: Numbers) -> jax.Array:
    """RAPTOR: () int32, the action type for an item."""
    can = {kind: seen.legal[kind, slot] for kind in (EXECUTE, DEFER, OPTIMIZE)}
    deadline, risk = seen.deadline[slot], seen.risk[slot]
    new = seen.item["optimized"][slot] == 0
    scarce = jnp.minimum(seen.world["energy"], seen.world["budget"]) < numbers.critical
    last, spare = deadline < 2, seen.left > numbers.spare
    postpone = can[DEFER] & may_defer
    rules = (  # the first that holds
        (seen.item["late"][slot] > 0, DELEGATE),
        (~can[EXECUTE] & (deadline >= numbers.patience) & postpone, DEFER),
        (~can[EXECUTE] | scarce, DELEGATE),
        ((risk > numbers.risky) & new & ~last & can[OPTIMIZE], OPTIMIZE),
        ((risk > numbers.postponable) & new & last & spare & postpone, DEFER),
        (risk > numbers.hopeless, DELEGATE),
    )
    kind = jnp.int32(EXECUTE)
    for holds, then in reversed(rules):
        kind = jnp.where(holds, jnp.int32(then), kind)
    return kind


def _first_legal(seen: Seen, slot: jax.Array, kinds: tuple[int, ...]) -> jax.Array:
    """() int32, the first of `kinds` that is legal for an item, else the last of them."""
    kind = jnp.int32(kinds[-1])
    for other in reversed(kinds[:-1]):
        kind = jnp.where(seen.legal[other, slot], jnp.int32(other), kind)
    return kind


def _by_deadline(name: str, kinds: tuple[int, ...]) -> Policy:
    """The first of `kinds` that is legal, on pending items before late ones."""

    def act(key: jax.Array, obs: jax.Array, mask: jax.Array, params: Params):
        seen = read(obs, mask, params)
        order = jnp.where(seen.item["pending"] > 0, seen.deadline, jnp.finfo(obs.dtype).max)
        order = jnp.where(seen.legal[DELEGATE], order, jnp.inf)
        slot = jnp.argmin(order).astype(jnp.int32)
        return join(_first_legal(seen, slot, kinds), slot), params

    return Policy(name, lambda key, params: params, act)


@lru_cache
def planner() -> Policy:
    """Look-ahead for the grade over three rules; 3 x 1,024 played episodes a choice."""
    bases = heuristic(tuned=True), heuristic(), earliest_deadline()
    return look_ahead(TaskFlow(), bases, state_from_observation, PLANNER_ROUNDS, "planner")
