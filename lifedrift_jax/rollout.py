"""Play episodes inside compiled code: one scan over the horizon, no automatic reset."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from lifedrift_jax.core import Env, Policy, fence, horizon, positive
from lifedrift_jax.rng import policy_key, reset_key, step_key


class Play(NamedTuple):
    """An episode in progress; the carry of the scan.

    Attributes:
        key: the episode's key.
        state: environment state.
        carry: the policy's carry.
        episode_return: () float, sum of rewards so far.
        length: () int32, steps taken so far, none after the end.
    """

    key: jax.Array
    state: Any
    carry: Any
    episode_return: jax.Array
    length: jax.Array


class Transition(NamedTuple):
    """One step of an episode; after the end of the episode, padding.

    Attributes:
        obs: observation BEFORE the action.
        action: () int32; in padding whatever the policy chose.
        reward: () float; 0 in padding.
        state: state AFTER the action; in padding the final state.
        terminated: () bool, the task has ended with or before this step.
        invalid: () bool, the action was out of range or illegal; False in padding.
        valid: () bool, False in padding.
    """

    obs: jax.Array
    action: jax.Array
    reward: jax.Array
    state: Any
    terminated: jax.Array
    invalid: jax.Array
    valid: jax.Array


class Outcome(NamedTuple):
    """What an episode came to.

    Attributes:
        score: () float in [0, 1], the grade; provisional if not finished.
        episode_return: () float, sum of rewards.
        length: () int32, steps taken.
        finished: () bool, the task ended within the steps played.
        events: () bools named by `env.event_names`.
    """

    score: jax.Array
    episode_return: jax.Array
    length: jax.Array
    finished: jax.Array
    events: tuple[jax.Array, ...]


def start(key: jax.Array, env: Env, policy: Policy, params: Any) -> Play:
    """Reset the episode of `key` (an episode key, see `rng.episode_key`)."""
    state = env.start(reset_key(key), params)
    # Offset by both constants of rng, so it is a stream that nothing else draws from.
    carry = policy.init(policy_key(reset_key(key), 0), params)
    _, reward = jax.eval_shape(env.transition, state, jnp.int32(0), env.draw(key), params)
    return Play(key, state, carry, jnp.zeros((), reward.dtype), jnp.int32(0))


def advance(
    play: Play, step: jax.Array, env: Env, policy: Policy, params: Any
) -> tuple[Play, Transition]:
    """Let the policy act once. From a finished state nothing changes.

    Args:
        play: the episode so far.
        step: () int32, number of this step, from 0.
    """
    live = ~env.is_terminal(play.state, params)
    obs = env.observe(play.state, params)
    mask = env.action_mask(play.state, params)
    action, carry = policy.act(policy_key(play.key, step), obs, mask, play.carry)
    action = fence(step >= 0, action)
    result = env.step(step_key(play.key, step), play.state, action, params)
    after = Play(
        play.key,
        result.state,
        carry,
        play.episode_return + result.reward,
        play.length + live.astype(jnp.int32),
    )
    invalid = result.info["invalid_action"]
    seen = Transition(obs, action, result.reward, result.state, result.terminated, invalid, live)
    return after, seen


def finish(play: Play, env: Env, params: Any) -> Outcome:
    """Grade an episode."""
    return Outcome(
        env.grade(play.state, params),
        play.episode_return,
        play.length,
        env.is_terminal(play.state, params),
        env.events(play.state, params),
    )


def episode(
    key: jax.Array, env: Env, policy: Policy, params: Any, num_steps: int | None = None
) -> tuple[Outcome, Transition]:
    """Play one episode and keep every step.

    Args:
        key: the episode's key; batch with `jax.vmap`.
        env, policy, params: what to play.
        num_steps: steps to scan, T; by default `params.max_steps`. Steps after the end are
            padding (`Transition.valid` False); an episode cut short stays unfinished.

    Returns:
        (outcome, transitions): leaves of transitions have the leading axis [T].
    """
    steps = horizon(params) if num_steps is None else positive("num_steps", num_steps)
    return _episode(key, env, policy, params, steps)


@partial(jax.jit, static_argnames=("env", "policy", "num_steps"))
def _episode(key, env, policy, params, num_steps):
    play, transitions = jax.lax.scan(
        lambda play, step: advance(play, step, env, policy, params),
        start(key, env, policy, params),
        jnp.arange(num_steps, dtype=jnp.int32),
    )
    return finish(play, env, params), transitions
