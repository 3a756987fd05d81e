"""LifeStack: resolve a crisis, written as a Task of routes, milestones and events."""

from lifedrift_jax.life_stack.beliefs import Solution, solve
from lifedrift_jax.life_stack.compile import compile_task
from lifedrift_jax.life_stack.dynamics import draw, initial_state, transition
from lifedrift_jax.life_stack.env import LifeStack, make
from lifedrift_jax.life_stack.library import FlightCrisisTask
from lifedrift_jax.life_stack.play import LifeStackEnv
from lifedrift_jax.life_stack.schema import ExoEvent, Milestone, Route, Task
from lifedrift_jax.life_stack.tables import OUTCOMES, TYPES
from lifedrift_jax.life_stack.types import Capacity, Noise, Params, State, World

__all__ = [
    "OUTCOMES",
    "TYPES",
    "Capacity",
    "ExoEvent",
    "FlightCrisisTask",
    "LifeStack",
    "LifeStackEnv",
    "Milestone",
    "Noise",
    "Params",
    "Route",
    "Solution",
    "State",
    "Task",
    "World",
    "compile_task",
    "draw",
    "initial_state",
    "make",
    "solve",
    "transition",
]
