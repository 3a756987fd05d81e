"""TaskFlow behind the contract of `core.Env`."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from lifedrift_jax.core import Env
from lifedrift_jax.spaces import Box
from lifedrift_jax.task_flow import actions, dynamics, generate, graders, tables
from lifedrift_jax.task_flow.types import MAX_REWARD, Noise, Params, State, task_params

ITEM_COLUMNS = (
    "pending",
    "held",
    "late",
    "priority",
    "deadline",  # steps left / max_steps, at most 1
    "uncertainty",
    "value",  # / 2, the most a step can pay
    "energy_cost",  # share of the energy at the start, at most 1
    "budget_cost",  # share of the budget at the start, at most 1
    "optimized",  # 1 if it was
    *tables.DOMAINS,
)
GLOBAL_COLUMNS = (
    "time",  # share of steps left
    "energy",  # share left
    "budget",  # share left
    "health",
    "completed",  # share of items
    "failed",  # share of items that failed or are late
    "reward_sum",  # / (2 max_steps)
    *(f"is_{tier}" for tier in tables.TASKS),
)


@dataclass(frozen=True)
class TaskFlow(Env[State, Params, Noise]):
    """Serve a queue of work items within 10 steps, with limited energy and budget.

    The three tiers are three params of this one env. An action is `type * 12 + slot`, named
    `execute:0` to `optimize:11`; what is legal is in the mask.

    Observation, [12, 27] float32 in [-1, 1], a row an item slot: first the item's columns
    (ITEM_COLUMNS), all 0 unless it is in the queue; then the globals (GLOBAL_COLUMNS), the
    same in every row. Slots are exchangeable: permuting items permutes the rows.
    """

    observation_names: ClassVar[tuple[str, ...]] = (*ITEM_COLUMNS, *GLOBAL_COLUMNS)
    action_names: ClassVar[tuple[str, ...]] = actions.NAMES
    variable_names: ClassVar[tuple[str, ...]] = (
        *("energy", "budget", "health"),
        *("queue", "completed", "failed"),
    )
    event_names: ClassVar[tuple[str, ...]] = ("all_completed", "collapse")
    reward_range: ClassVar[tuple[float, float]] = (-1.0, MAX_REWARD)

    def start(self, key: jax.Array, params: Params) -> State:
        """See `generate.initial_state`."""
        return generate.initial_state(key, params)

    def draw(self, key: jax.Array) -> Noise:
        """See `dynamics.draw`."""
        return dynamics.draw(key)

    def transition(
        self, state: State, action: jax.Array, noise: Noise, params: Params
    ) -> tuple[State, jax.Array]:
        """See `dynamics.transition`."""
        return dynamics.transition(state, action, noise, params)

    def is_terminal(self, state: State, params: Params) -> jax.Array:
        """() bool, no step is left or the queue is empty."""
        return actions.is_over(state, params)

    def action_mask(self, state: State, params: Params) -> jax.Array:
        """[48] bool, see `actions.mask`."""
        return jnp.concatenate(actions.mask(state, params))

    def is_legal(self, state: State, action: jax.Array, params: Params) -> jax.Array:
        """() bool, the action is in range and its entry of the mask is True."""
        return actions.target(state, action, params).legal

    def observe(self, state: State, params: Params) -> jax.Array:
        """[12, 27] float32, see the class."""
        queued = actions.in_queue(state)
        columns = [jnp.where(queued, x, jnp.zeros_like(x)) for x in _items(state, params)]
        columns += [jnp.broadcast_to(x, (tables.SLOTS,)) for x in _globals(state, params)]
        return jnp.stack([x.astype(jnp.float32) for x in columns], axis=-1)

    def variables(self, state: State, params: Params) -> tuple[jax.Array, ...]:
        """energy, budget, health; then counts of items queued, completed, failed (or late)."""
        completed = graders.count(state.status == tables.COMPLETED)
        queue = graders.count(actions.in_queue(state))
        return state.energy, state.budget, state.health, queue, completed, graders.lost(state)

    def events(self, state: State, params: Params) -> tuple[jax.Array, ...]:
        """() bools: every item is completed; health is below 0.3."""
        served = (state.status == tables.EMPTY) | (state.status == tables.COMPLETED)
        return jnp.all(served), state.health < params.collapse_health

    def observation_space(self, params: Params) -> Box:
        """[12, 27] float32 in [-1, 1]."""
        return Box(-1.0, 1.0, (tables.SLOTS, len(self.observation_names)))

    def score(self, state: State, params: Params) -> jax.Array:
        """The grade, () float in [0, 1]."""
        return graders.grade(state, params)


def _items(state: State, params: Params) -> list[jax.Array]:
    """[12] columns of the observation, in the order of ITEM_COLUMNS."""
    real = state.energy.dtype
    most = 1 / params.max_steps.astype(real)
    return [
        state.status == tables.PENDING,
        state.status == tables.HELD,
        state.status == tables.LATE,
        state.priority,
        jnp.minimum(state.deadline.astype(real) * most, 1),
        state.uncertainty,
        state.value * (1 / MAX_REWARD),
        jnp.minimum(state.energy_cost * (1 / params.energy), 1),
        jnp.minimum(state.budget_cost * (1 / params.budget), 1),
        state.optimized > 0,
        *(state.domain == number for number in range(len(tables.DOMAINS))),
    ]


def _globals(state: State, params: Params) -> list[jax.Array]:
    """() columns of the observation, in the order of GLOBAL_COLUMNS."""
    real = state.energy.dtype
    completed, _, health, time = graders.components(state, params)
    earned = state.reward_sum * (1 / (MAX_REWARD * params.max_steps.astype(real)))
    return [
        time,
        state.energy * (1 / params.energy),
        state.budget * (1 / params.budget),
        health,
        completed,
        graders.lost(state).astype(real) * (1 / params.items.astype(real)),
        jnp.clip(earned, -1, 1),
        *(params.tier == number for number in range(len(tables.TASKS))),
    ]


def make(env_id: str) -> tuple[TaskFlow, Params]:
    """The env and the params of `task_flow/<tier>-v0`."""
    tier = env_id.split("/")[-1].rpartition("-v")[0]
    return TaskFlow(), task_params(tier)
