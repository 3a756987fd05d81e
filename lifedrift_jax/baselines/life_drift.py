"""Baseline policies of Life Drift: rule-based, and greedy on the expected reward of a step."""

from dataclasses import replace
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lifedrift_jax.core import Policy
from lifedrift_jax.life_drift import (
    ACTIONS,
    VARIABLES,
    LifeDrift,
    Noise,
    Params,
    State,
    initial_state,
    noise_from_uniforms,
    transition,
)

# Korobov lattice: point i has the coordinates (i * MULTIPLIER**j mod n + 1/2) / n.
_MULTIPLIER = 5
_NUM_POINTS = 64


@lru_cache
def rule_based() -> Policy:
    """Rest when spent, push what matters most when adrift, ease off when tired, else suggest."""

    def act(key: jax.Array, obs: jax.Array, mask: jax.Array, carry: Any) -> tuple[jax.Array, Any]:
        alignment, drift, energy, fatigue, _ = obs[: len(VARIABLES)]
        rules = (  # the first that holds
            ((fatigue > 0.75) | (energy < 0.3), "insert_break"),
            ((alignment < 0.5) & (drift > 0.4), "prioritize_goal"),
            (drift > 0.4, "suggest_task"),
            (fatigue > 0.55, "reduce_difficulty"),
        )
        action = jnp.int32(ACTIONS.index("suggest_task"))
        for holds, name in reversed(rules):
            action = jnp.where(holds, jnp.int32(ACTIONS.index(name)), action)
        return action, carry

    return Policy("rule", lambda key, params: (), act)


def greedy(num_points: int = _NUM_POINTS) -> Policy:
    """The action with the largest expected reward of the next step, from the true model.

    The expectation over the step's eight draws is the mean over a fixed lattice of points
    in [0, 1]^8; of equal actions the first. The policy keeps `params` as its carry.

    Measured against 8,192 Sobol points, on 1,000 to 2,000 states a task that greedy play
    visits: with 64 points it picks the same action in at least 98.9% of them, and gives up
    1e-5 of expected reward a step in the mean and .0024 at most. Mean grades are within
    .001 of those with 1,024 points.

    Args:
        num_points: how many, a power of two and at least 32 (with fewer, coordinates of the
            lattice repeat); the cost of a step grows with it.

    Raises:
        ValueError: another number.
    """
    if num_points not in (2**k for k in range(5, 31)):
        raise ValueError(f"num_points is {num_points!r}: use a power of two, at least 32")
    return _greedy(int(num_points))


@lru_cache
def _greedy(num_points: int) -> Policy:
    lattice = _lattice(num_points)

    def act(
        key: jax.Array, obs: jax.Array, mask: jax.Array, params: Params
    ) -> tuple[jax.Array, Params]:
        state = state_from_observation(obs, params)
        points = jnp.asarray(lattice, state.alignment.dtype)

        def total_reward(action: jax.Array) -> jax.Array:
            def add(total: jax.Array, point: jax.Array) -> tuple[jax.Array, None]:
                _, reward = transition(state, action, noise_from_uniforms(point), params)
                return total + reward, None

            return jax.lax.scan(add, jnp.zeros_like(state.alignment), points)[0]

        # Loops, not nested vmaps: a batch of episodes is the one long axis, the memory stays
        # that of one step, and the order of the sum is the same in every program.
        totals = jax.lax.map(total_reward, jnp.arange(len(ACTIONS), dtype=jnp.int32))
        return jnp.argmax(totals).astype(jnp.int32), params

    name = "greedy" if num_points == _NUM_POINTS else f"greedy({num_points} points)"
    return Policy(name, lambda key, params: params, act)


def state_from_observation(obs: jax.Array, params: Params) -> State:
    """The state behind an observation, as far as the next step's reward depends on it.

    Exact in the five variables and the step count (for horizons up to thousands of steps);
    running sums and recent actions are those of the first state.

    Args:
        obs: [10] float32, see `LifeDrift`.
        params: the episode's params, whose float dtype the state gets.
    """
    entries = dict(zip(LifeDrift.observation_names, obs, strict=True))
    fraction = entries["step_fraction"]
    step = jnp.round(fraction * params.max_steps.astype(fraction.dtype)).astype(jnp.int32)
    variables = {name: entries[name].astype(params.start.dtype) for name in VARIABLES}
    return replace(initial_state(params), step=step, **variables)


def _lattice(num_points: int) -> np.ndarray:
    """[num_points, 8] points in (0, 1), each coordinate a permutation of the midpoints."""
    powers = [pow(_MULTIPLIER, j, num_points) for j in range(len(Noise._fields))]
    return (np.outer(np.arange(num_points), powers) % num_points + 0.5) / num_points
