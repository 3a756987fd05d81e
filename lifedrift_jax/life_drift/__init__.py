"""Life Drift: guide a simulated user through a day of limited energy and growing fatigue."""

from lifedrift_jax.life_drift.dynamics import (
    day_phase,
    draw,
    initial_state,
    noise_from_uniforms,
    transition,
)
from lifedrift_jax.life_drift.env import LifeDrift, make
from lifedrift_jax.life_drift.graders import components, grade, unclamped_grade
from lifedrift_jax.life_drift.reward import reward
from lifedrift_jax.life_drift.tables import ACTIONS, COMPONENTS, PHASES, TASKS, VARIABLES
from lifedrift_jax.life_drift.types import Noise, Params, Reward, State, task_params

__all__ = [
    "ACTIONS",
    "COMPONENTS",
    "PHASES",
    "TASKS",
    "VARIABLES",
    "LifeDrift",
    "Noise",
    "Params",
    "Reward",
    "State",
    "components",
    "day_phase",
    "draw",
    "grade",
    "initial_state",
    "make",
    "noise_from_uniforms",
    "reward",
    "task_params",
    "transition",
    "unclamped_grade",
]
