"""Params, State and Noise of LifeStack: a task as padded arrays, and what changes in it.

A *fact* is a statement of the form "key k has value v". A key takes one of finitely many
values, so a task has finitely many facts, and a set of facts is W words of 32 bits, [W]
uint32. Fact k (k < 32, word 0) says "key k is absent"; the others follow from bit 32 on. One
fact of each key holds at any time. With sets of facts, a list of conditions is one AND:
all hold if none of the facts that contradict them does. Sets of routes, milestones, events,
types and keys are the bits of one uint32; word 0 of the facts of some keys is the set of
these keys.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

from lifedrift_jax.core import positive

MAX_STEPS = 1_000  # longest horizon
WORD = 32  # bits of a set's word


@dataclass(frozen=True)
class Capacity:
    """How much fits into the arrays of a task; what is not used is padding.

    Attributes:
        routes: R, at most 32.
        keys: K, at most 32.
        milestones: M, at most 32.
        events: E, at most 32.
        types: T, action types, those of `tables.TYPES` included, at most 32.
        words: W, 32-bit words of a set of facts: 32 (W - 1) values of all keys together.
        draws: D, values of all keys that are drawn at reset.
        rewards: what the absolute rewards of a task may add up to.
    """

    routes: int = 8
    keys: int = 32
    milestones: int = 8
    events: int = 8
    types: int = 16
    words: int = 4
    draws: int = 16
    rewards: int = 32

    def __post_init__(self) -> None:
        """Raise ValueError for sizes that are not legal."""
        for name in self.__dataclass_fields__:
            size = positive(name, getattr(self, name))
            if name in ("routes", "keys", "milestones", "events", "types") and size > WORD:
                raise ValueError(f"{name} is {size}: it must be at most {WORD}")
            object.__setattr__(self, name, size)


class Noise(NamedTuple):
    """The draws of a step."""

    event: jax.Array  # [E] float in (0, 1): an event by chance fires if below its probability


class Writes(NamedTuple):
    """What a cause does to the facts: `(facts & ~clears) | sets`. [..., W] uint32 each."""

    clears: jax.Array
    sets: jax.Array


class Routes(NamedTuple):
    """The ways to act, a row each; a row without types is padding."""

    types: jax.Array  # [R] uint32, set of the action types it takes, each once
    forbidden: jax.Array  # [R, W] uint32, facts that contradict its preconditions
    writes: Writes  # [R, W] on completion
    closes: jax.Array  # [R] uint32, set of routes, on completion
    unlocks: jax.Array  # [R] uint32, set of milestones, on completion
    reward: jax.Array  # [R] float, on completion
    cost: jax.Array  # [R] float, money, on completion


class Milestones(NamedTuple):
    """Checkpoints that pay once, a row each; a row of zeros is padding."""

    facts: jax.Array  # [M, W] uint32, reached when one of these holds
    reward: jax.Array  # [M] float


class Events(NamedTuple):
    """What happens by itself, in the order in which it is looked at: those of a step first."""

    step: jax.Array  # [E] int32, when; -1 = by chance, -2 = padding
    probability: jax.Array  # [E] float, a step, of those by chance
    writes: Writes  # [E, W]
    closes: jax.Array  # [E] uint32, set of routes


class Prior(NamedTuple):
    """What is drawn at reset: row d writes its fact if low <= uniform of its lane < high."""

    lane: jax.Array  # [D] int32, which uniform; one a key
    low: jax.Array  # [D] float
    high: jax.Array  # [D] float; 0 = padding
    writes: Writes  # [D, W]


class Shaping(NamedTuple):
    """Rewards that the task's text does not have; all 0 unless set. They leave the score."""

    step: jax.Array  # () float, of each legal step
    progress: jax.Array  # () float, of an action that a route takes
    blocked: jax.Array  # () float, of an action that is blocked


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Params:
    """A compiled task. Stack several of one capacity to `vmap` over tasks.

    Made by `compile_task`; `best_return` belongs to the rules it was compiled from, so change
    the Task and compile it again rather than these numbers. `shaping` is free to change.
    """

    task: jax.Array  # () int32, number of the task's texts, see `texts.of`; without effect
    num_types: jax.Array  # () int32, T, for texts only: no other array has this size
    max_steps: jax.Array  # () int32, the horizon
    deadline: jax.Array  # () int32, step at which missed_deadline becomes true, NO_DEADLINE
    budget: jax.Array  # () float, money that routes may spend, NO_BUDGET
    keys: jax.Array  # [K, W] uint32, the facts of each key; 0 = padding
    start: jax.Array  # [W] uint32, the facts at reset, before what is drawn
    visible: jax.Array  # [W] uint32, facts of keys that are always shown, and of padding keys
    hidden: jax.Array  # [W] uint32, facts of hidden keys, whose blind use closes a route
    missed: Writes  # [W] of missed_deadline
    success: jax.Array  # [W] uint32, facts that contradict success
    failure: jax.Array  # [W] uint32, facts each of which is failure
    routes: Routes
    milestones: Milestones
    events: Events
    prior: Prior
    best_return: jax.Array  # () float, expected return of the best play without hindsight
    shaping: Shaping

    def validate(self) -> None:
        """Raise ValueError if a concrete number makes no sense."""

        def need(holds: Any, name: str, value: Any, legal: str) -> None:
            if not np.all(holds):
                raise ValueError(f"{name} is {np.asarray(value).tolist()}: it must be {legal}")

        steps, best = self.max_steps, self.best_return
        need((steps >= 1) & (steps <= MAX_STEPS), "max_steps", steps, f"in [1, {MAX_STEPS:,}]")
        need(self.deadline >= 1, "deadline", self.deadline, "at least 1")
        need(self.budget >= 0, "budget", self.budget, "at least 0")
        need(best > 0, "best_return", best, "above 0")
        cost, chance = self.routes.cost, self.events.probability
        need(cost >= 0, "routes.cost", cost, "at least 0")
        need((chance >= 0) & (chance <= 1), "events.probability", chance, "in [0, 1]")


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class World:
    """What a rollback restores."""

    facts: jax.Array  # [W] uint32, the facts that hold
    closed: jax.Array  # () uint32, set of routes
    completed: jax.Array  # () uint32, set of routes
    reached: jax.Array  # () uint32, set of milestones
    used: jax.Array  # [R] uint32, the types already used on each route


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    """What changes in an episode."""

    world: World
    undo: World  # the world as it would be had the last action been to wait
    shown: jax.Array  # [W] uint32, facts of keys that are visible or were inspected
    fired: jax.Array  # () uint32, set of events
    rollback: jax.Array  # () int32, NOTHING_TO_UNDO, MAY_ROLL_BACK or ROLLBACK_USED
    step: jax.Array  # () int32, steps taken
    last_action: jax.Array  # () int32; -1 = none, or it was illegal
    last_outcome: jax.Array  # () int32, index into tables.OUTCOMES
