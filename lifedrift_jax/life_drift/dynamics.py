"""The rules of Life Drift: draw, then move. Pure functions, no API.

One step, in this order: the action's effects; the step count; natural dynamics; the day
phase; the cascade; the clamp of all five variables to [0, 1]; the reward.
"""

from collections.abc import Sequence
from dataclasses import replace

import jax
import jax.numpy as jnp

from lifedrift_jax import rng
from lifedrift_jax.core import Tree, fence, integer_action, pick, select
from lifedrift_jax.life_drift.reward import reward
from lifedrift_jax.life_drift.tables import ACTIONS, CASCADE, NATURAL, PHASES, VARIABLES
from lifedrift_jax.life_drift.types import Noise, Params, State


def initial_state(params: Params) -> State:
    """The fixed first state of a task."""
    alignment, drift, energy, fatigue, focus = params.start
    zero, none = jnp.zeros_like(alignment), jnp.zeros_like(params.max_steps)
    return State(
        alignment=alignment,
        drift=drift,
        energy=energy,
        fatigue=fatigue,
        focus=focus,
        step=none,
        alignment_sum=zero,
        drift_sum=zero,
        fatigue_sum=zero,
        energy_sum=zero,
        energy_square_sum=zero,
        fatigue_max=fatigue,
        reward_sum=zero,
        cascade_steps=none,
        recent=none,
    )


def draw(key: jax.Array) -> Noise:
    """The eight draws of a step, float32 in (0, 1) with 16 bits each (see `rng`).

    `key` is consumed; nothing else enters.
    """
    return noise_from_uniforms([u for lane in range(4) for u in rng.uniform_pair(key, lane)])


def noise_from_uniforms(uniforms: jax.Array | Sequence[jax.Array]) -> Noise:
    """A Noise from eight uniforms in [0, 1], such as recorded ones.

    Args:
        uniforms: [8] float: alignment, drift, energy, fatigue, focus, natural fatigue,
            natural drift, natural energy.
    """
    if len(uniforms) != len(Noise._fields):
        raise ValueError(f"uniforms has {len(uniforms)} entries: a step takes 8")
    return Noise(*(jnp.asarray(u) for u in uniforms))


def transition(
    state: State, action: jax.Array, noise: Noise, params: Params
) -> tuple[State, jax.Array]:
    """Move from an unfinished state.

    Args:
        state: the state before.
        action: () integer in [0, 6); any other integer leaves the five variables as they
            are, pays 0 and counts a step.
        noise: the step's draws; keeps its dtype, as state and params do.
        params: the numbers.

    Returns:
        (state after, reward): reward () float in [-1, 1].

    Raises:
        TypeError: `action` is no integer of shape ().
    """
    action = integer_action(action)
    valid = (action >= 0) & (action < len(ACTIONS))
    moved, cascade = _move(state, action, noise, params)
    moved = _fence(select(valid, moved, _variables(state)), params)
    after = replace(state, **moved)
    paid = _fence(jnp.where(valid, reward(state, after, params.reward), 0), params)
    return _tally(after, action, valid, cascade & valid, paid, params), paid


def day_phase(step: jax.Array, max_steps: jax.Array) -> jax.Array:
    """() int32, index into PHASES once `step` steps are counted: min(5 step // max_steps, 4)."""
    later = (len(PHASES) * step >= phase * max_steps for phase in range(1, len(PHASES)))
    return sum((x.astype(jnp.int32) for x in later), start=jnp.zeros_like(step))


def _variables(state: State) -> dict[str, jax.Array]:
    return {name: getattr(state, name) for name in VARIABLES}


def _move(
    state: State, action: jax.Array, noise: Noise, params: Params
) -> tuple[dict[str, jax.Array], jax.Array]:
    """The five variables after a legal action, clamped, and whether the cascade struck."""
    x = _effects(action, noise, params)
    x = {name: value + x[name] for name, value in _variables(state).items()}
    for i, name in enumerate(NATURAL):
        u = getattr(noise, f"natural_{name}")
        x[name] = x[name] + _scale(u, params.natural_low[i], params.natural_high[i])
    phase = day_phase(state.step + 1, params.max_steps)
    x["fatigue"] = x["fatigue"] + pick(params.phase_fatigue, phase)
    x["focus"] = x["focus"] + pick(params.phase_focus, phase)
    x["fatigue"] = _fence(x["fatigue"], params)
    cascade = x["fatigue"] > params.cascade_threshold
    for name in CASCADE:
        change = getattr(params, f"cascade_{name}")
        x[name] = jnp.where(cascade, x[name] + change, x[name])
    return {name: jnp.clip(value, 0, 1) for name, value in x.items()}, cascade


def _effects(action: jax.Array, noise: Noise, params: Params) -> dict[str, jax.Array]:
    """The action's change of each variable, natural dynamics left out."""
    effects = {}
    for column, (name, u) in enumerate(zip(VARIABLES, noise[: len(VARIABLES)], strict=True)):
        low, high = params.effect_low[:, column], params.effect_high[:, column]
        effects[name] = pick(low, action) + pick(high - low, action) * u
    drift_share = pick(params.drift_per_alignment, action)
    fatigue_share = pick(params.fatigue_per_energy, action)
    effects["drift"] = effects["drift"] + drift_share * effects["alignment"]
    effects["fatigue"] = effects["fatigue"] + fatigue_share * effects["energy"]
    return effects


def _fence(x: Tree, params: Params) -> Tree:
    """`x`, where several others are computed from it (see `core.fence`)."""
    return fence(params.max_steps > 0, x)


def _scale(u: jax.Array, low: jax.Array, high: jax.Array) -> jax.Array:
    return low + (high - low) * u


def _tally(
    state: State,
    action: jax.Array,
    valid: jax.Array,
    cascade: jax.Array,
    paid: jax.Array,
    params: Params,
) -> State:
    """Count the step and add the moved state to the running sums."""
    start_alignment, start_drift, start_energy, start_fatigue, _ = params.start
    energy_shift = state.energy - start_energy
    return replace(
        state,
        step=state.step + 1,
        alignment_sum=state.alignment_sum + (state.alignment - start_alignment),
        drift_sum=state.drift_sum + (state.drift - start_drift),
        fatigue_sum=state.fatigue_sum + (state.fatigue - start_fatigue),
        energy_sum=state.energy_sum + energy_shift,
        energy_square_sum=state.energy_square_sum + energy_shift * energy_shift,
        fatigue_max=jnp.maximum(state.fatigue_max, state.fatigue),
        reward_sum=state.reward_sum + paid,
        cascade_steps=state.cascade_steps + cascade.astype(jnp.int32),
        recent=(state.recent * 8 + jnp.where(valid, action + 1, 7)) % 512,
    )
