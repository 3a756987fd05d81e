"""TaskFlow: serve a queue of work items before they expire, with limited energy and budget."""

from lifedrift_jax.task_flow.dynamics import draw, failure_chance, transition
from lifedrift_jax.task_flow.env import GLOBAL_COLUMNS, ITEM_COLUMNS, TaskFlow, make
from lifedrift_jax.task_flow.generate import initial_state
from lifedrift_jax.task_flow.graders import components, grade, penalty
from lifedrift_jax.task_flow.tables import (
    ACTION_TYPES,
    COMPONENTS,
    DOMAINS,
    OUTCOMES,
    SLOTS,
    SOURCE,
    STATUSES,
    TASKS,
)
from lifedrift_jax.task_flow.types import MAX_REWARD, Domains, Noise, Params, State, task_params

__all__ = [
    "ACTION_TYPES",
    "COMPONENTS",
    "DOMAINS",
    "GLOBAL_COLUMNS",
    "ITEM_COLUMNS",
    "MAX_REWARD",
    "OUTCOMES",
    "SLOTS",
    "SOURCE",
    "STATUSES",
    "TASKS",
    "Domains",
    "Noise",
    "Params",
    "State",
    "TaskFlow",
    "components",
    "draw",
    "failure_chance",
    "grade",
    "initial_state",
    "make",
    "penalty",
    "task_params",
    "transition",
]
