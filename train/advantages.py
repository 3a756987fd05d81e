"""Advantages, for ONE trajectory: batch with `jax.vmap`."""

import jax
import jax.numpy as jnp

SPREAD = 1e-6  # float32 rounds a mean by about this share of the largest value


def gae(
    rewards: jax.Array,
    values: jax.Array,
    next_values: jax.Array,
    terminated: jax.Array,
    truncated: jax.Array,
    gamma: jax.Array | float,
    gae_lambda: jax.Array | float,
) -> jax.Array:
    """Generalised advantage estimates (Schulman et al. 2015, arXiv:1506.02438, eq. 16).

        error[t] = rewards[t] + gamma * (0 if terminated[t] else next_values[t]) - values[t]
        A[t] = error[t] + (0 if an episode ended at t else gamma * gae_lambda * A[t + 1])

    Args:
        rewards: [T] float.
        values: [T] float, value of the observation before step t.
        next_values: [T] float, value of the TRUE observation after step t: where an episode
            ended there, of its own last one, not of the first of the next episode.
        terminated: [T] bool, the task ended at t: nothing is worth anything after it.
        truncated: [T] bool, the episode was cut from outside at t: the world went on.
        gamma, gae_lambda: () float in [0, 1].

    Returns:
        [T] advantages. Targets of the value are `advantages + values`.
    """
    errors = rewards + gamma * jnp.where(terminated, 0, next_values) - values
    weights = jnp.where(terminated | truncated, 0, gamma * gae_lambda * jnp.ones_like(errors))

    def back(later: jax.Array, step: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        error, weight = step
        advantage = error + weight * later
        return advantage, advantage

    _, advantages = jax.lax.scan(back, jnp.zeros_like(errors[0]), (errors, weights), reverse=True)
    return advantages


def following(values: jax.Array, last_value: jax.Array, final_values, truncated) -> jax.Array:
    """`next_values` of `gae`: [T], from what a trajectory with automatic resets knows.

    Args:
        values: [T] float.
        last_value: () float, value of the observation after the last step.
        final_values: [T] float, value of an episode's own last observation; read where
            `truncated` [T] is True.
    """
    return jnp.where(truncated, final_values, jnp.concatenate([values[1:], last_value[None]]))


def normalized(advantages: jax.Array, axis_name: str | None = None) -> jax.Array:
    """`advantages` [N] with mean 0 and standard deviation 1; all 0 where they are all equal.

    Equal means up to rounding: a spread below 1e-6 of the largest magnitude. So a batch of
    one, or of one value, pushes the policy nowhere.

    Args:
        axis_name: mapped axis over which the batch is split.
    """
    mean = jnp.mean(advantages)
    mean = mean if axis_name is None else jax.lax.pmean(mean, axis_name)
    centred = advantages - mean
    variance = jnp.mean(centred * centred)
    largest = jax.lax.stop_gradient(jnp.max(jnp.abs(advantages)))  # pmax has no derivative
    if axis_name is not None:
        variance = jax.lax.pmean(variance, axis_name)
        largest = jax.lax.pmax(largest, axis_name)
    spread = variance > (SPREAD * largest) ** 2
    # The root of 1 in place of 0's, whose slope is infinite: the gradient would be NaN.
    return jnp.where(spread, centred / jnp.sqrt(jnp.where(spread, variance, 1)), 0)
