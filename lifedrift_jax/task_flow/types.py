"""Params, State and Noise of TaskFlow."""

from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lifedrift_jax.task_flow import tables

MAX_STEPS = 1_000  # longest episode
MAX_REWARD = 2.0  # the most that a step may pay


class Noise(NamedTuple):
    """The uniform draws of a step, float in (0, 1); those of items are one a slot.

    Permuting items and draws together permutes the outcome.
    """

    absence: jax.Array  # () whoever an execution needs is absent if below the domain's chance
    failure: jax.Array  # () it fails if below the item's chance
    drift: jax.Array  # [12] sign (below 1/2: down) and size of the priority's drift
    hurry: jax.Array  # [12] the deadline comes a step closer still if below the chance
    spike: jax.Array  # [12] the uncertainty jumps if below the chance ...
    spike_size: jax.Array  # [12] ... by this share of the way to the top


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Domains:
    """Columns of `tables.DOMAINS`, [7] float each; meanings there."""

    energy: jax.Array
    budget: jax.Array
    value: jax.Array
    failure: jax.Array
    volatility: jax.Array
    absence: jax.Array
    deferrable: jax.Array


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Params:
    """Every tunable number of TaskFlow. Stack several to `vmap` over tiers.

    Ranges are [2]: lower and upper bound of a uniform draw, both included.
    """

    tier: jax.Array  # () int32, index into tables.TASKS, for the observation and texts only
    max_steps: jax.Array  # () int32, steps of an episode
    items: jax.Array  # () int32, work items at the start, in [1, 12]
    priority: jax.Array  # [2] in (0, 1]
    deadline: jax.Array  # [2] int32, steps
    uncertainty: jax.Array  # [2] in [0, 1]
    energy_cost: jax.Array  # [2] units of energy
    budget_cost: jax.Array  # [2] units of budget
    value: jax.Array  # [2]
    energy: jax.Array  # () at the start
    budget: jax.Array  # () at the start
    drift: jax.Array  # [2] relative change of a priority in a step
    hurry_chance: jax.Array  # () a step and item
    spike_chance: jax.Array  # () a step and item, before the domain's factor
    spike_top: jax.Array  # () where spikes lead to
    priority_low: jax.Array  # () least priority after drift
    failure_scale: jax.Array  # () chance of a failed execution at uncertainty 1
    failure_share: jax.Array  # () of the full reward
    failure_health: jax.Array  # () lost when an item fails or expires
    overload_share: jax.Array  # () of energy or budget
    overload_health: jax.Array  # () lost by an execution that ends below it
    optimize_factor: jax.Array  # () on the uncertainty
    optimize_cost: jax.Array  # () share of an execution's costs
    optimize_reward: jax.Array  # ()
    delegate_share: jax.Array  # () of the full reward
    delegate_health: jax.Array  # () lost by a delegation
    defer_penalty: jax.Array  # () x priority
    defer_extension: jax.Array  # () int32, steps
    recovery: jax.Array  # () share of the starting energy
    upkeep: jax.Array  # () budget spent each step, share of the start
    domains: Domains
    grade_weights: jax.Array  # [4] of tables.COMPONENTS
    resource_shares: jax.Array  # [3] of time, energy, budget
    failed_penalty: jax.Array  # () off the grade if all items fail
    collapse_penalty: jax.Array  # () off the grade if health ends below collapse_health
    collapse_health: jax.Array  # ()

    def validate(self) -> None:
        """Raise ValueError if a concrete number makes no sense."""

        def need(holds: Any, name: str, legal: str) -> None:
            if not np.all(holds):
                value = np.asarray(attrgetter(name)(self)).tolist()
                raise ValueError(f"{name} is {value}: it must be {legal}")

        need((self.tier >= 0) & (self.tier < len(tables.TASKS)), "tier", "an index of TASKS")
        need((self.max_steps >= 1) & (self.max_steps <= MAX_STEPS), "max_steps", _MAX_STEPS)
        need((self.items >= 1) & (self.items <= tables.SLOTS), "items", f"in [1, {tables.SLOTS}]")
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            need((value >= low) & (value <= high), name, f"in [{low:g}, {high:g}]")
            if name in _BOUNDS:
                need(value[..., 0] <= value[..., 1], name, "a lower and an upper bound")
        most = self.value[..., 1] * np.max(self.domains.value, axis=-1)
        need(most <= MAX_REWARD, "value", f"so low that no item pays more than {MAX_REWARD:g}")
        for column in fields(Domains):
            need(getattr(self.domains, column.name) >= 0, f"domains.{column.name}", "at least 0")
        need(self.domains.absence <= 1, "domains.absence", "at most 1")
        for name in ("grade_weights", "resource_shares"):
            total = np.sum(getattr(self, name), axis=-1)
            need(total < 1 + 1e-6, name, "of a sum of at most 1")


_MAX_STEPS = f"in [1, {MAX_STEPS:,}]"
_ANY = np.inf
_BOUNDS = (
    *("priority", "deadline", "uncertainty"),
    *("energy_cost", "budget_cost", "value", "drift"),
)
# Field -> lowest and highest legal value.
_RANGES: dict[str, tuple[float, float]] = {
    "priority": (1e-3, 1),
    "deadline": (1, MAX_STEPS),
    "uncertainty": (0, 1),
    "energy_cost": (0, _ANY),
    "budget_cost": (0, _ANY),
    "value": (0, _ANY),
    "energy": (1e-3, _ANY),
    "budget": (1e-3, _ANY),
    "drift": (0, 1),
    "hurry_chance": (0, 1),
    "spike_chance": (0, 1),
    "spike_top": (0, 1),
    "priority_low": (1e-3, 1),
    "failure_scale": (0, _ANY),
    "failure_share": (0, 1),
    "failure_health": (0, 1),
    "overload_share": (0, 1),
    "overload_health": (0, 1),
    "optimize_factor": (0, 1),
    "optimize_cost": (0, _ANY),
    "optimize_reward": (0, 1),
    "delegate_share": (0, 1),
    "delegate_health": (0, 1),
    "defer_penalty": (0, 1),
    "defer_extension": (0, MAX_STEPS),
    "recovery": (0, 1),
    "upkeep": (0, 1),
    "grade_weights": (0, 1),
    "resource_shares": (0, 1),
    "failed_penalty": (0, 1),
    "collapse_penalty": (0, 1),
    "collapse_health": (0, 1),
}


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    """What changes in an episode, and the items it was dealt. [12] is one entry a slot.

    An empty slot holds 0 everywhere; an item that has left the queue keeps its last numbers.
    """

    status: jax.Array  # [12] int32, index into tables.STATUSES
    domain: jax.Array  # [12] int32, index into tables.DOMAINS
    wording: jax.Array  # [12] int32, which title `describe` gives it; without effect
    priority: jax.Array  # [12] float in (0, 1]
    deadline: jax.Array  # [12] int32, steps in which it can still be served, this one included
    uncertainty: jax.Array  # [12] float in [0, 1]
    value: jax.Array  # [12] float
    energy_cost: jax.Array  # [12] float, of an execution
    budget_cost: jax.Array  # [12] float, of an execution
    optimized: jax.Array  # [12] int32, how often
    energy: jax.Array  # () float, left
    budget: jax.Array  # () float, left
    health: jax.Array  # () float in [0, 1]
    step: jax.Array  # () int32, steps taken
    reward_sum: jax.Array  # () float, the accumulated value
    last_item: jax.Array  # () int32, slot of the last action; -1 = none, or it was illegal
    last_outcome: jax.Array  # () int32, index into tables.OUTCOMES


def task_params(tier: str, dtype: type = np.float32) -> Params:
    """Params of a version-0 tier.

    Args:
        tier: a name of `tables.TASKS`.
        dtype: of the float leaves.
    """
    spec = tables.TASKS[tier]._asdict()
    numbers: dict[str, Any] = {
        **tables.RULES,
        **spec,
        "grade_weights": spec["weights"],
        "resource_shares": tables.RESOURCE_SHARES,
        "tier": list(tables.TASKS).index(tier),
        "max_steps": tables.MAX_STEPS,
    }

    def typed(name: str) -> jax.Array:
        return jnp.asarray(np.asarray(numbers[name], np.int32 if name in _INTEGERS else dtype))

    columns = zip(tables.Domain._fields, zip(*tables.DOMAINS.values(), strict=True), strict=True)
    domains = Domains(**{name: jnp.asarray(np.asarray(x, dtype)) for name, x in columns})
    own = [f.name for f in fields(Params) if f.name != "domains"]
    return Params(domains=domains, **{name: typed(name) for name in own})


_INTEGERS = ("tier", "max_steps", "items", "deadline", "defer_extension")
