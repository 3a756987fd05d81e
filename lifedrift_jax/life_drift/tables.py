"""The numbers of Life Drift, version 0, as tables. Plain Python and numpy, no JAX.

They are those of the public Life Drift environment (the release whose grader formulas its
text states); `tests/golden/life_drift_reference.json` holds recorded episodes of it.
"""

from typing import NamedTuple

import numpy as np

VARIABLES = ("alignment", "drift", "energy", "fatigue", "focus")
ACTIONS = (
    "suggest_task",
    "prioritize_goal",
    "insert_break",
    "reschedule_task",
    "reduce_difficulty",
    "do_nothing",
)
PHASES = ("morning", "late_morning", "afternoon", "late_afternoon", "evening")

# One row an action; per variable the bounds (low, high) of a uniform draw; 0, 0 = no effect.
EFFECTS = np.array([
    #  alignment       drift           energy          fatigue         focus
    [( .08,  .18), ( .00,  .00), (-.12, -.05), ( .05,  .12), ( .02,  .08)],  # suggest_task
    [( .10,  .20), (-.15, -.08), (-.15, -.08), ( .06,  .10), ( .05,  .10)],  # prioritize_goal
    [(-.04, -.01), ( .02,  .06), ( .10,  .20), ( .00,  .00), ( .05,  .10)],  # insert_break
    [( .05,  .10), (-.08, -.04), (-.05, -.02), ( .00,  .00), ( .03,  .07)],  # reschedule_task
    [( .03,  .08), (-.05, -.02), ( .02,  .05), (-.07, -.03), ( .00,  .00)],  # reduce_difficulty
    [(-.07, -.03), ( .05,  .10), ( .01,  .03), (-.03, -.01), (-.06, -.03)],  # do_nothing
])  # fmt: skip
# Effects that follow another variable's draw: drift per alignment gained, fatigue per energy
# gained. A task done takes drift away; a break takes fatigue away.
DRIFT_PER_ALIGNMENT = np.array([-0.9, 0, 0, 0, 0, 0])
FATIGUE_PER_ENERGY = np.array([0, 0, -1.1, 0, 0, 0])

# What passes by itself each step, each its own draw: bounds (low, high).
NATURAL = {"fatigue": (0.01, 0.03), "drift": (0.01, 0.02), "energy": (-0.03, -0.01)}

# Constant effects of the day phase, one column a phase of PHASES.
PHASE_FATIGUE = np.array([0.0, 0.0, 0.0, 0.02, 0.02])
PHASE_FOCUS = np.array([0.02, 0.0, 0.0, -0.02, -0.02])

# The burnout cascade: constant effects of a step in which fatigue passes the threshold.
CASCADE_THRESHOLD = 0.85
CASCADE = {"alignment": -0.03, "drift": 0.03, "focus": -0.05}

REWARD = {
    "alignment": 0.4,  # per unit of alignment gained
    "drift": -0.3,  # per unit of drift gained
    "fatigue": -0.2,  # per unit of fatigue gained, if gained
    "energy_low": 0.4,  # the energy window, bounds included
    "energy_high": 0.7,
    "energy_inside": 0.1,  # paid inside the window
    "energy_outside": -0.05,  # paid outside
    "on_course": 0.1,  # paid if alignment > on_course_alignment and drift < on_course_drift
    "on_course_alignment": 0.7,
    "on_course_drift": 0.3,
    "rested": 0.05,  # paid if fatigue < rested_fatigue and energy > rested_energy
    "rested_fatigue": 0.4,
    "rested_energy": 0.5,
    "exhausted": -0.15,  # paid if fatigue > exhausted_fatigue
    "exhausted_fatigue": 0.9,
    "adrift": -0.1,  # paid if drift > adrift_drift
    "adrift_drift": 0.8,
    "low": -1.0,  # the sum is clipped to [low, high]
    "high": 1.0,
}

# Constants of the graders' components (see graders.py) and the final clamp.
GRADER = {"target": 0.7, "variance_scale": 4.0, "low": 0.01, "high": 0.99}
COMPONENTS = (
    "final_alignment",
    "final_low_drift",
    "mean_alignment",
    "mean_low_fatigue",
    "final_low_fatigue",
    "mean_low_drift",
    "steady_energy",
    "low_peak_fatigue",
    "mean_reward",
)


class Task(NamedTuple):
    """One task. Texts stay here; only numbers enter params.

    Attributes:
        description: one sentence.
        difficulty: easy, medium or hard.
        max_steps: deadline, steps.
        start: the five variables at the start, in the order of VARIABLES.
        goals: the user's goals, words without effect on the numbers.
        weights: weight of each grader component used, by name of COMPONENTS.
        habits: what the user did before the first step, oldest first.
    """

    description: str
    difficulty: str
    max_steps: int
    start: tuple[float, ...]
    goals: tuple[str, ...]
    weights: dict[str, float]
    habits: tuple[str, str, str]


TASKS = {
    "drift_correction": Task(
        "Win back a user who has drifted far from their goals, in one short day.",
        "easy",
        10,
        (0.2, 0.8, 0.7, 0.3, 0.3),
        ("fitness", "study", "side_project"),
        {"final_alignment": 0.6, "final_low_drift": 0.4},
        ("watched videos until late", "put the list off again", "wandered through news feeds"),
    ),
    "energy_balance": Task(
        "Keep a productive but exhausted user on course while their fatigue comes down.",
        "medium",
        15,
        (0.8, 0.2, 0.3, 0.8, 0.6),
        ("fitness", "study", "side_project"),
        {"mean_alignment": 0.4, "mean_low_fatigue": 0.3, "final_low_fatigue": 0.3},
        ("worked past midnight", "ate lunch at the desk", "answered mail before dawn"),
    ),
    "long_term_stability": Task(
        "Keep every measure steady over a long day with four goals and a burnout cliff.",
        "hard",
        20,
        (0.5, 0.5, 0.5, 0.5, 0.5),
        ("fitness", "study", "side_project", "networking"),
        {
            "mean_low_drift": 0.3,
            "steady_energy": 0.25,
            "low_peak_fatigue": 0.25,
            "mean_reward": 0.2,
        },
        ("finished half a chapter", "skipped the gym", "wrote to an old colleague"),
    ),
}


def validate() -> None:
    """Raise ValueError if the tables do not fit together (called by a test and on import)."""
    if EFFECTS.shape != (len(ACTIONS), len(VARIABLES), 2):
        raise ValueError(f"EFFECTS has shape {EFFECTS.shape}")
    if not (EFFECTS[..., 0] <= EFFECTS[..., 1]).all():
        raise ValueError("EFFECTS: a low bound is above its high bound")
    for name, column, own in (
        ("DRIFT_PER_ALIGNMENT", DRIFT_PER_ALIGNMENT, VARIABLES.index("drift")),
        ("FATIGUE_PER_ENERGY", FATIGUE_PER_ENERGY, VARIABLES.index("fatigue")),
    ):
        if column.shape != (len(ACTIONS),):
            raise ValueError(f"{name} has shape {column.shape}")
        if (EFFECTS[column != 0, own] != 0).any():
            raise ValueError(f"{name}: an action has both an own and a following effect")
    if not PHASE_FATIGUE.shape == PHASE_FOCUS.shape == (len(PHASES),):
        raise ValueError("PHASE_FATIGUE and PHASE_FOCUS need one entry a phase")
    for name, task in TASKS.items():
        if abs(sum(task.weights.values()) - 1) > 1e-12 or not set(task.weights) <= set(COMPONENTS):
            raise ValueError(f"{name}: weights {task.weights} must be of COMPONENTS and sum to 1")
        if len(task.start) != len(VARIABLES) or not all(0 <= x <= 1 for x in task.start):
            raise ValueError(f"{name}: start {task.start} must be five numbers in [0, 1]")


validate()
