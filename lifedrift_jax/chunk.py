"""The compiled part of a sweep: play a chunk of episodes and measure it on the device."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from lifedrift_jax import rollout, summary
from lifedrift_jax.rng import IMPLEMENTATION, episode_key
from lifedrift_jax.summary import Totals


class Chunk(NamedTuple):
    """What one chunk returns, n episodes.

    Attributes:
        totals: its contribution to the summary.
        outcome: leaves [n], in the order of the episodes.
    """

    totals: Totals
    outcome: rollout.Outcome


@partial(jax.jit, static_argnames=("env", "policy", "num_steps", "steps"))
def play_chunk(seeds, indices, count, params, *, env, policy, num_steps, steps) -> Chunk:
    """Play n episodes.

    Args:
        seeds, indices: [n] uint32; episode i is the one with index indices[i] of seeds[i].
        count: () int32, the first `count` episodes are measured, the others are padding.
        params: the task.
        env, policy: what to play.
        num_steps: steps to scan.
        steps: also measure step by step; slower.
    """

    def play_one(seed, index, in_plan):
        key = episode_key(jax.random.key(seed, impl=IMPLEMENTATION), index)
        play = rollout.start(key, env, policy, params)
        first = _watch(env.variables(play.state, params), in_plan) if steps else None

        def body(play, step):
            play, seen = rollout.advance(play, step, env, policy, params)
            if not steps:
                return play, None
            took = seen.valid & in_plan
            chosen = [seen.action == a for a in range(env.num_actions)]
            choices = _watch([*chosen, seen.invalid], took)
            return play, (_watch(env.variables(seen.state, params), took), choices)

        play, watched = jax.lax.scan(body, play, jnp.arange(num_steps, dtype=jnp.int32))
        return rollout.finish(play, env, params), (first, watched)

    in_plan = jnp.arange(seeds.shape[0], dtype=jnp.int32) < count
    # Sums over episodes are taken inside the scan, so no [T, n] array is ever stored.
    outcome, watched = jax.vmap(play_one, out_axes=(0, None))(seeds, indices, in_plan)
    return Chunk(_measure(outcome, watched, in_plan, env, num_steps), outcome)


@jax.custom_batching.custom_vmap
def _sum_over_batch(x: jax.Array) -> jax.Array:
    """Sum of a () value over the axis of an enclosing vmap; the result has no batch axis."""
    return x


@_sum_over_batch.def_vmap
def _(axis_size, in_batched, x):
    return summary.total(x) if in_batched[0] else x * axis_size, False


def _watch(values: Sequence[jax.Array], took: jax.Array) -> tuple[jax.Array, ...]:
    """How many episodes took a step, and the sums [V] of their values and squares."""
    numbers = [jnp.where(took, x.astype(jnp.float32), 0) for x in values]
    sums = [_sum_over_batch(x) for x in numbers]
    squares = [_sum_over_batch(x * x) for x in numbers]
    count = _sum_over_batch(took.astype(jnp.float32))
    return count, jnp.array(sums, jnp.float32), jnp.array(squares, jnp.float32)


def _measure(outcome, watched, in_plan, env, num_steps) -> Totals:
    counted = in_plan & outcome.finished
    length = outcome.length.astype(outcome.score.dtype)
    # Times 1/n: a division by n may round differently in another program.
    step_reward = outcome.episode_return * (1 / jnp.maximum(length, 1))
    graded = jnp.stack([outcome.score, outcome.episode_return])
    first, after = watched
    actions, variables = _measure_steps(first, after, num_steps)
    return Totals(
        episodes=jnp.sum(in_plan, dtype=jnp.int32),
        score=summary.moments(outcome.score, counted),
        episode_return=summary.moments(outcome.episode_return, counted),
        step_reward=summary.moments(step_reward, counted),
        length=summary.moments(length, counted),
        score_bins=summary.histogram(outcome.score, counted, (0.0, 1.0)),
        return_bins=summary.histogram(
            outcome.episode_return, counted, env.return_bounds(num_steps)
        ),
        low=jnp.min(jnp.where(counted, graded, jnp.inf), axis=1),
        high=jnp.max(jnp.where(counted, graded, -jnp.inf), axis=1),
        events=tuple(jnp.sum(event & counted, dtype=jnp.int32) for event in outcome.events),
        actions=actions,
        variables=variables,
    )


def _measure_steps(first, after, num_steps) -> tuple[jax.Array, summary.Moments]:
    """Counts of choices [T, A + 2] and Moments of the variables [T + 1, V] (see Totals)."""
    if after is None:
        nothing = jnp.zeros((num_steps + 1, 0))
        moments = summary.Moments(nothing, nothing, nothing)
        return jnp.zeros((num_steps, 0), jnp.int32), moments
    variables, (choices, chosen, _) = after
    count, total, square = (
        jnp.concatenate([a[None], b]) for a, b in zip(first, variables, strict=True)
    )
    n = jnp.maximum(count, 1)[:, None]
    mean = total / n
    counts = jnp.broadcast_to(count[:, None], total.shape).astype(jnp.int32)
    spread = jnp.maximum(square - total * mean, 0)
    actions = jnp.concatenate([chosen, choices[:, None]], axis=1).astype(jnp.int32)
    return actions, summary.Moments(counts, mean, spread)
