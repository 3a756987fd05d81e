"""The words and limits of LifeStack, as tables. Plain Python, no JAX."""

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
