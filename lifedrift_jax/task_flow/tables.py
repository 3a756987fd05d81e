"""The numbers of TaskFlow, version 0, as tables. Plain Python and numpy, no JAX.

Tiers, weights, penalties and action semantics are those of the AETHER-TaskFlow text; what it
leaves open was calibrated to its score table (`SOURCE`) by `benchmarks/calibrate_task_flow.py`.
"""

from typing import NamedTuple

SLOTS = 12  # item slots of every tier; those beyond a tier's items stay empty
MAX_STEPS = 10  # steps of an episode, in every tier
DEFAULT_SEED = 42  # of a played episode, where none is named

ACTION_TYPES = ("execute", "defer", "delegate", "optimize")
EXECUTE, DEFER, DELEGATE, OPTIMIZE = range(len(ACTION_TYPES))

# What has become of an item. The first is an unused slot; pending, held and late items are
# in the queue, the others have left it.
STATUSES = ("empty", "pending", "held", "late", "delegated", "completed", "failed")
EMPTY, PENDING, HELD, LATE, DELEGATED, COMPLETED, FAILED = range(len(STATUSES))

# What the last action came to; "none" before the first.
OUTCOMES = (
    "none",
    "invalid",
    "completed",
    "failed",
    "absent",
    "too_late",
    "deferred",
    "delegated",
    "closed",
    "optimized",
)
(
    NONE,
    INVALID,
    DONE,
    BOTCHED,
    ABSENT,
    TOO_LATE,
    POSTPONED,
    HANDED_OVER,
    CLOSED,
    CLARIFIED,
) = range(len(OUTCOMES))
# Outcome -> what becomes of the item; an item whose outcome is not here stays as it is.
BECOMES = {
    DONE: COMPLETED,
    BOTCHED: FAILED,
    TOO_LATE: FAILED,
    CLOSED: FAILED,
    POSTPONED: HELD,
    HANDED_OVER: DELEGATED,
}


class Domain(NamedTuple):
    """Where an item comes from: factors on what its tier draws, each 1 in the mean.

    Attributes:
        energy, budget: factors on the costs.
        value: factor on the value.
        failure: factor on the chance that an execution fails.
        volatility: factor on the drift of its priority and the chance of a spike.
        absence: chance that whoever is needed is absent when it is executed.
        deferrable: 1 if it can be deferred, else 0.
    """

    energy: float
    budget: float
    value: float
    failure: float
    volatility: float
    absence: float
    deferrable: int


DOMAINS = {
    "email_triage": Domain(0.6, 0.5, 0.80, 0.1, 0.8, 0.0, 1),
    "code_review": Domain(0.9, 0.7, 0.90, 0.1, 0.8, 0.10, 1),
    "incident_response": Domain(1.4, 1.0, 1.20, 0.5, 1.3, 0.0, 1),
    "data_pipeline": Domain(1.1, 1.0, 1.00, 4.0, 1.6, 0.0, 1),
    "security_audit": Domain(1.2, 1.3, 1.05, 0.3, 0.8, 0.0, 1),
    "compliance_check": Domain(0.9, 0.9, 1.10, 0.1, 0.6, 0.0, 0),
    "model_retraining": Domain(0.9, 1.6, 0.95, 1.9, 1.1, 0.0, 1),
}


class Tier(NamedTuple):
    """One tier. Ranges are bounds (low, high) of a uniform draw, both included.

    Attributes:
        description: one sentence.
        difficulty: easy, medium or hard.
        items: work items at the start.
        priority: of an item at the start.
        deadline: steps in which it can be served.
        uncertainty: of an item at the start.
        energy_cost, budget_cost: of an execution, before the domain's factor.
        value: before the domain's factor; the full reward is value x priority.
        energy, budget: at the start.
        weights: of the grade: efficiency, resources, health, speed.
        failed_penalty: taken off the grade if all items fail, in proportion if some do.
        collapse_penalty: taken off the grade if the final health is below collapse_health.
        drift: priorities change by a factor 1 +- this range each step.
        hurry_chance: chance that a deadline comes one step closer still.
        spike_chance: chance that an uncertainty jumps towards spike_top, before the
            domain's factor.
        failure_health: health lost when an item expires or its execution fails: most where
            all else is calm.
        defer_extension: steps by which a deferred item's deadline moves: most where the dates
            are shortest.
    """

    description: str
    difficulty: str
    items: int
    priority: tuple[float, float]
    deadline: tuple[int, int]
    uncertainty: tuple[float, float]
    energy_cost: tuple[float, float]
    budget_cost: tuple[float, float]
    value: tuple[float, float]
    energy: float
    budget: float
    weights: tuple[float, float, float, float]
    failed_penalty: float
    collapse_penalty: float
    drift: tuple[float, float]
    hurry_chance: float
    spike_chance: float
    failure_health: float
    defer_extension: int


TASKS = {
    "easy": Tier(
        description="Clear a short queue in a stable organisation.",
        difficulty="easy",
        items=5,
        priority=(0.4, 0.9),
        deadline=(4, 8),
        uncertainty=(0.05, 0.35),
        energy_cost=(0.12, 0.30),
        budget_cost=(0.2, 0.5),
        value=(0.875, 1.43),
        energy=12.0,
        budget=60.0,
        weights=(0.5, 0.25, 0.15, 0.1),
        failed_penalty=0.0,
        collapse_penalty=0.0,
        drift=(0.0, 0.0),
        hurry_chance=0.0,
        spike_chance=0.0,
        failure_health=0.58,
        defer_extension=0,
    ),
    "medium": Tier(
        description="Keep up with a queue whose priorities drift and whose deadlines tighten.",
        difficulty="medium",
        items=8,
        priority=(0.3, 1.0),
        deadline=(2, 6),
        uncertainty=(0.15, 0.65),
        energy_cost=(0.45, 1.05),
        budget_cost=(1.2, 2.8),
        value=(0.95, 1.55),
        energy=10.0,
        budget=50.0,
        weights=(0.45, 0.2, 0.25, 0.1),
        failed_penalty=0.2,
        collapse_penalty=0.0,
        drift=(0.08, 0.12),
        hurry_chance=0.05,
        spike_chance=0.0,
        failure_health=0.04,
        defer_extension=3,
    ),
    "hard": Tier(
        description="Save what can be saved of an overfull queue, with scarce resources.",
        difficulty="hard",
        items=12,
        priority=(0.2, 1.0),
        deadline=(1, 4),
        uncertainty=(0.35, 0.95),
        energy_cost=(0.6, 1.4),
        budget_cost=(1.6, 3.8),
        value=(0.87, 1.43),
        energy=8.0,
        budget=40.0,
        weights=(0.4, 0.15, 0.35, 0.1),
        failed_penalty=0.25,
        collapse_penalty=0.15,
        drift=(0.0, 0.0),
        hurry_chance=0.2,
        spike_chance=0.15,
        failure_health=0.024,
        defer_extension=4,
    ),
}

# Numbers of the rules that all tiers share.
RULES = {
    "failure_scale": 1.15,  # chance of a failed execution at uncertainty 1 (it grows with the
    #                         square), before the domain's factor
    "failure_share": 0.65,  # of the full reward, paid for a failed execution
    "overload_share": 0.2,  # executing down to less than this share of a resource ...
    "overload_health": 0.05,  # ... costs this much health
    "optimize_factor": 0.15,  # on the uncertainty
    "optimize_cost": 0.25,  # share of an execution's costs
    "optimize_reward": 0.1,
    "delegate_share": 0.35,  # of the full reward
    "delegate_health": 0.02,  # health lost by a delegation: hand-overs strain the system
    "defer_penalty": 0.02,  # x priority
    "recovery": 0.01,  # energy regained in a step that spends none, share of the start
    "upkeep": 0.085,  # budget that every step costs, share of the start
    "spike_top": 0.95,  # where spikes of uncertainty lead to
    "priority_low": 0.05,  # drifting priorities stay in [priority_low, 1]
    "collapse_health": 0.3,
}

# Shares of time, energy and budget in the grade's resources.
RESOURCE_SHARES = (0.30, 0.35, 0.35)
COMPONENTS = ("efficiency", "resources", "health", "speed")


class Figures(NamedTuple):
    """Mean score, and mean over episodes of reward / steps, of a policy."""

    score: float
    step_reward: float


# What the source text says its heuristic and a uniform random policy reach.
SOURCE = {
    "heuristic": {
        "easy": Figures(0.85, 0.606),
        "medium": Figures(0.44, 0.475),
        "hard": Figures(0.18, 0.279),
    },
    "random": {
        "easy": Figures(0.30, 0.28),
        "medium": Figures(0.15, 0.18),
        "hard": Figures(0.05, 0.09),
    },
}


def validate() -> None:
    """Raise ValueError if the tables do not fit together (called on import)."""
    for name, tier in TASKS.items():
        if abs(sum(tier.weights) - 1) > 1e-12 or len(tier.weights) != len(COMPONENTS):
            raise ValueError(f"{name}: weights {tier.weights} must be four that sum to 1")
        if not 1 <= tier.items <= SLOTS:
            raise ValueError(f"{name}: items is {tier.items}, not in [1, {SLOTS}]")
    if abs(sum(RESOURCE_SHARES) - 1) > 1e-12:
        raise ValueError(f"RESOURCE_SHARES {RESOURCE_SHARES} must sum to 1")
    for column in ("energy", "budget", "value", "failure", "volatility"):
        mean = sum(getattr(domain, column) for domain in DOMAINS.values()) / len(DOMAINS)
        if abs(mean - 1) > 1e-9:
            raise ValueError(f"DOMAINS: {column} has mean {mean}, not 1")


validate()
