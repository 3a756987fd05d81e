"""The rules of TaskFlow: draw, then move. Pure functions, no API.

One step, in this order: the action and what it pays; energy recovers if none was spent, and
the budget pays for upkeep; priorities drift, uncertainties jump, deadlines come closer; what
has expired is late and costs health; held items return.
"""

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp

from lifedrift_jax import rng
from lifedrift_jax.core import Tree, fence, integer_action, pick, rounded
from lifedrift_jax.task_flow import actions, tables
from lifedrift_jax.task_flow.graders import count
from lifedrift_jax.task_flow.tables import SLOTS
from lifedrift_jax.task_flow.types import Noise, Params, State


def draw(key: jax.Array) -> Noise:
    """All draws of a step, float32 in (0, 1) with 16 bits each (see `rng`).

    `key` is consumed; nothing else enters.
    """
    absence, failure = rng.uniform_pair(key, 0)
    drift, hurry = rng.uniform_pairs(key, 1, SLOTS)
    spike, spike_size = rng.uniform_pairs(key, 1 + SLOTS, SLOTS)
    return Noise(absence, failure, drift, hurry, spike, spike_size)


def transition(
    state: State, action: jax.Array, noise: Noise, params: Params
) -> tuple[State, jax.Array]:
    """Move from an unfinished state.

    Args:
        state: the state before.
        action: () integer, see `actions`; an illegal one has no effect of its own and pays
            0, while time passes as in every step.
        noise: the step's draws; keeps its dtype, as state and params do.
        params: the numbers.

    Returns:
        (state after, reward): reward () float.

    Raises:
        TypeError: `action` is no integer of shape ().
    """
    action = integer_action(action)
    move = _fence(_resolve(state, action, noise, params), params)
    paid = _fence(_reward(state, move, params), params)
    after = _world(_act(state, move, params), state, noise, params)
    after = replace(
        after,
        step=state.step + 1,
        reward_sum=state.reward_sum + paid,
        last_item=jnp.where(move.target.legal, move.target.slot, -1),
        last_outcome=move.outcome,
    )
    return after, paid


class _Move(NamedTuple):
    """An action and what came of it.

    Attributes:
        target: its item.
        outcome: () int32, index into `tables.OUTCOMES`.
    """

    target: actions.Target
    outcome: jax.Array

    def came_to(self, *outcomes: int) -> jax.Array:
        """() bool: the outcome is one of these."""
        holds = jnp.bool_(False)
        for outcome in outcomes:
            holds = holds | (self.outcome == outcome)
        return holds


def _resolve(state: State, action: jax.Array, noise: Noise, params: Params) -> _Move:
    """Whether an action is legal, and what comes of it."""
    target = actions.target(state, action, params)
    late, domain = target.of(state.status) == tables.LATE, target.of(state.domain)
    factor = pick(params.domains.failure, domain)
    risk = failure_chance(target.of(state.uncertainty), factor, params.failure_scale)
    absent = noise.absence < pick(params.domains.absence, domain)
    executed = jnp.where(noise.failure < risk, tables.BOTCHED, tables.DONE)
    executed = jnp.where(absent, tables.ABSENT, executed)
    outcome = jnp.int32(tables.INVALID)
    for kind, came in (
        (tables.EXECUTE, jnp.where(late, tables.TOO_LATE, executed)),
        (tables.DEFER, tables.POSTPONED),
        (tables.DELEGATE, jnp.where(late, tables.CLOSED, tables.HANDED_OVER)),
        (tables.OPTIMIZE, tables.CLARIFIED),
    ):
        outcome = jnp.where(target.legal & (target.kind == kind), came, outcome)
    return _Move(target, outcome)


def failure_chance(uncertainty: jax.Array, factor: jax.Array, scale: jax.Array) -> jax.Array:
    """Chance that an execution fails, above 1 means always: scale x uncertainty^2 x factor.

    Args:
        uncertainty: of the item, in [0, 1].
        factor: its domain's.
        scale: `Params.failure_scale`.
    """
    return scale * uncertainty * uncertainty * factor


def _reward(state: State, move: _Move, params: Params) -> jax.Array:
    """() float, what the step pays."""
    priority = move.target.of(state.priority)
    full = rounded(move.target.of(state.value) * priority)
    paid = jnp.zeros_like(full)
    for outcome, value in (
        (tables.DONE, full),
        (tables.BOTCHED, params.failure_share * full),
        (tables.HANDED_OVER, params.delegate_share * full),
        (tables.CLARIFIED, params.optimize_reward),
        (tables.POSTPONED, -params.defer_penalty * priority),
    ):
        paid = jnp.where(move.outcome == outcome, value, paid)
    return paid


def _act(state: State, move: _Move, params: Params) -> State:
    """The state after the action, before the world moves."""
    becomes = jnp.int32(-1)  # the item's status, where it changes
    for outcome, status in tables.BECOMES.items():
        becomes = jnp.where(move.outcome == outcome, jnp.int32(status), becomes)
    chosen = move.target.chosen
    executed = move.came_to(tables.DONE, tables.BOTCHED, tables.TOO_LATE)
    clarified, postponed = move.came_to(tables.CLARIFIED), move.came_to(tables.POSTPONED)
    share = jnp.where(executed, 1, jnp.where(clarified, params.optimize_cost, 0))
    # Not below 0: the mask and this line may round a share of a cost differently.
    energy = jnp.maximum(state.energy - rounded(share * move.target.of(state.energy_cost)), 0)
    budget = jnp.maximum(state.budget - rounded(share * move.target.of(state.budget_cost)), 0)
    strained = (energy < params.overload_share * params.energy) | (
        budget < params.overload_share * params.budget
    )
    lost = (
        jnp.where(executed & strained, params.overload_health, 0)
        + jnp.where(move.came_to(tables.BOTCHED), params.failure_health, 0)
        + jnp.where(move.came_to(tables.HANDED_OVER, tables.CLOSED), params.delegate_health, 0)
    )
    optimized = chosen & clarified
    changed = {
        "status": jnp.where(chosen & (becomes >= 0), becomes, state.status),
        "uncertainty": jnp.where(
            optimized, params.optimize_factor * state.uncertainty, state.uncertainty
        ),
        "optimized": state.optimized + optimized.astype(jnp.int32),
        "deadline": jnp.where(
            chosen & postponed, state.deadline + params.defer_extension, state.deadline
        ),
        "energy": energy,
        "budget": budget,
        "health": state.health - lost,
    }
    return replace(state, **_fence(changed, params))


def _world(state: State, before: State, noise: Noise, params: Params) -> State:
    """What passes by itself in a step.

    Args:
        state: after the action.
        before: before it.
    """
    rested = jnp.minimum(state.energy + rounded(params.recovery * params.energy), params.energy)
    energy = jnp.where(state.energy >= before.energy, rested, state.energy)
    budget = jnp.maximum(state.budget - rounded(params.upkeep * params.budget), 0)
    to_do = (state.status == tables.PENDING) | (state.status == tables.HELD)
    volatility = pick(params.domains.volatility, state.domain)
    hurried = (noise.hurry < params.hurry_chance).astype(jnp.int32)
    deadline = jnp.where(to_do, jnp.maximum(state.deadline - 1 - hurried, 0), state.deadline)
    expired = to_do & (deadline == 0)
    lost = rounded(params.failure_health * count(expired).astype(state.health.dtype))
    drifted = _drifted(state, volatility, noise, params)
    spiked = _spiked(state, volatility, noise, params)
    after = replace(
        state,
        status=jnp.where(expired, tables.LATE, state.status),
        priority=jnp.where(to_do, drifted, state.priority),
        uncertainty=jnp.where(to_do, spiked, state.uncertainty),
        deadline=deadline,
        energy=energy,
        budget=budget,
        health=jnp.maximum(state.health - lost, 0),
    )
    return replace(after, status=_returned(after, before))


def _drifted(state: State, volatility: jax.Array, noise: Noise, params: Params) -> jax.Array:
    """[12] priorities after a step's drift."""
    up = noise.drift >= 0.5
    size = 2 * noise.drift - up.astype(noise.drift.dtype)
    low, high = params.drift
    change = rounded(volatility * (low + rounded((high - low) * size)))
    moved = state.priority + rounded(state.priority * jnp.where(up, change, -change))
    return jnp.clip(moved, jnp.minimum(params.priority_low, state.priority), 1)


def _spiked(state: State, volatility: jax.Array, noise: Noise, params: Params) -> jax.Array:
    """[12] uncertainties after a step's jumps."""
    jumps = noise.spike < params.spike_chance * volatility
    room = jnp.maximum(params.spike_top - state.uncertainty, 0)
    return state.uncertainty + jnp.where(jumps, rounded(room * noise.spike_size), 0)


def _returned(state: State, before: State) -> jax.Array:
    """[12] status, after held items have come back: those that can be paid for and were held
    before this step already, and all if nothing is pending otherwise.
    """
    held = state.status == tables.HELD
    back = held & (before.status == tables.HELD) & actions.affordable(state)
    pending = jnp.any(back | (state.status == tables.PENDING))
    return jnp.where(back | (held & ~pending), tables.PENDING, state.status)


def _fence(x: Tree, params: Params) -> Tree:
    """`x`, where several others are computed from it (see `core.fence`)."""
    return fence(params.max_steps > 0, x)
