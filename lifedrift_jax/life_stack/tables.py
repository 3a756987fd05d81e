"""The words and limits of LifeStack, as tables. Plain Python, no JAX."""

from typing import NamedTuple


class Builtin(NamedTuple):
    """A built-in task; what it says is in `library_table`."""

    difficulty: int  # its own, in [1, 5]


TASKS = {
    "flight_crisis": Builtin(4),
    "code_merge_crisis": Builtin(4),
    "train_delay": Builtin(3),
    "car_breakdown": Builtin(3),
    "rideshare_surge": Builtin(3),
    "transit_strike": Builtin(3),
    "career": Builtin(3),
    "finances": Builtin(3),
    "relationships": Builtin(3),
    "physical_health": Builtin(3),
    "mental_wellbeing": Builtin(3),
    "time": Builtin(3),
}

# Action types that every task knows; a task may name others.
TYPES = (
    "inspect",
    "plan",
    "execute",
    "communicate",
    "wait",
    "spend",
    "delegate",
    "negotiate",
    "rest",
    "escalate",
    "rollback",
)

MISSED_DEADLINE = "missed_deadline"  # the key that becomes true when deadline_step is reached
NO_DEADLINE = 2**30  # `Params.deadline` of a task without one
NO_BUDGET = 1e30  # `Params.budget` of a task without one
NO_EVENT = -2  # `Events.step` of an empty slot
BY_CHANCE = -1  # `Events.step` of an event that fires with a probability

# What the last action came to; "none" before the first.
OUTCOMES = (
    "none",
    "invalid",
    "waited",
    "rolled_back",
    "inspected",
    "progressed",
    "completed",
    "closed",
    "unknown",
    "precondition",
    "budget",
)
(
    NONE,
    INVALID,
    WAITED,
    ROLLED_BACK,
    INSPECTED,
    PROGRESSED,
    COMPLETED,
    CLOSED,  # blocked: an event of the same step closed the route
    UNKNOWN,  # blocked by a hidden key that was not inspected: the route closes
    PRECONDITION,  # blocked by what could be known
    BUDGET,  # blocked: not enough money is left to complete the route
) = range(len(OUTCOMES))

# Whether the next action may be a rollback.
NOTHING_TO_UNDO, MAY_ROLL_BACK, ROLLBACK_USED = range(3)
