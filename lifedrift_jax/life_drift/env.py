"""Life Drift behind the contract of `core.Env`."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from lifedrift_jax.core import Env
from lifedrift_jax.life_drift import dynamics, graders, tables
from lifedrift_jax.life_drift.types import Noise, Params, State, task_params
from lifedrift_jax.spaces import Box


@dataclass(frozen=True)
class LifeDrift(Env[State, Params, Noise]):
    """Guide a simulated user through a day: five variables, six interventions.

    The three tasks are three params of this one env.

    Observation, [10] float32 in [0, 1]: the five variables; the day phase (index / 4) and
    the share of steps taken; one 1 among the last three entries marks the task.
    """

    observation_names: ClassVar[tuple[str, ...]] = (
        *tables.VARIABLES,
        "day_phase",
        "step_fraction",
        *(f"is_{task}" for task in tables.TASKS),
    )
    action_names: ClassVar[tuple[str, ...]] = tables.ACTIONS
    variable_names: ClassVar[tuple[str, ...]] = tables.VARIABLES
    event_names: ClassVar[tuple[str, ...]] = ("cascade",)

    def start(self, key: jax.Array, params: Params) -> State:
        """The task's fixed first state; `key` is not used."""
        return dynamics.initial_state(params)

    def initial_state(self, params: Params) -> State:
        """The task's fixed first state."""
        return dynamics.initial_state(params)

    def draw(self, key: jax.Array) -> Noise:
        """See `dynamics.draw`."""
        return dynamics.draw(key)

    def transition(
        self, state: State, action: jax.Array, noise: Noise, params: Params
    ) -> tuple[State, jax.Array]:
        """See `dynamics.transition`."""
        return dynamics.transition(state, action, noise, params)

    def is_terminal(self, state: State, params: Params) -> jax.Array:
        """() bool, the deadline is reached."""
        return state.step >= params.max_steps

    def observe(self, state: State, params: Params) -> jax.Array:
        """[10] float32, see `observation_names`."""
        last_phase = len(tables.PHASES) - 1
        phase = dynamics.day_phase(state.step, params.max_steps).astype(jnp.float32) / last_phase
        # Times 1/n: a division by n may round differently alone and under vmap.
        fraction = state.step.astype(jnp.float32) * (1 / params.max_steps.astype(jnp.float32))
        values = [x.astype(jnp.float32) for x in self.variables(state, params)]
        task = [(params.task == i).astype(jnp.float32) for i in range(len(tables.TASKS))]
        return jnp.stack([*values, phase, fraction, *task])

    def variables(self, state: State, params: Params) -> tuple[jax.Array, ...]:
        """alignment, drift, energy, fatigue, focus, each () float in [0, 1]."""
        return state.alignment, state.drift, state.energy, state.fatigue, state.focus

    def events(self, state: State, params: Params) -> tuple[jax.Array, ...]:
        """() bool: the cascade has struck in some step."""
        return (state.cascade_steps > 0,)

    def observation_space(self, params: Params) -> Box:
        """[10] float32 in [0, 1]."""
        return Box(0.0, 1.0, (len(self.observation_names),))

    def score(self, state: State, params: Params) -> jax.Array:
        """The task's grade, () float in [0.01, 0.99]."""
        return graders.grade(state, params)


def make(env_id: str) -> tuple[LifeDrift, Params]:
    """The env and the params of `life_drift/<task>-v0`."""
    task = env_id.split("/")[-1].rpartition("-v")[0]
    return LifeDrift(), task_params(task)
