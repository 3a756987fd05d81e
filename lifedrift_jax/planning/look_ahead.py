"""Look-ahead with the true model: try the legal actions, play each to the end, keep the best.

The estimate of an action is the mean grade of episodes that begin with it and go on with a
base policy (a rollout algorithm: Bertsekas, Tsitsiklis and Wu 1997, Journal of Heuristics 3), the
best of several (parallel rollout: Chang, Givan and Chong 2004, Discrete Event Dynamic Systems
14), so up to noise the choice is at least as good as each base policy's. Samples go to the
actions that look best, by sequential halving (Karnin, Koren and Somekh 2013, ICML).
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from lifedrift_jax import rollout
from lifedrift_jax.core import Env, Policy
from lifedrift_jax.rng import policy_key, reset_key, step_key

Rounds = tuple[tuple[int, int], ...]


def look_ahead(
    env: Env,
    bases: Sequence[Policy],
    restore: Callable[[jax.Array, Any], Any],
    rounds: Rounds,
    name: str,
) -> Policy:
    """A policy that plans for the grade; call it once, each call is another policy object.

    Args:
        env: the model, deterministic but for its noise; its episodes must end.
        bases: what plays on after the first action; the best of them counts.
        restore: `(obs, params) -> state`, a state in which all goes on as it would in the
            one observed.
        rounds: (actions, samples) each: that many of the actions that look best so far are
            sampled that many times more. The first should take in all actions.
        name: the policy's.
    """

    def act(key: jax.Array, obs: jax.Array, mask: jax.Array, params: Any) -> tuple[jax.Array, Any]:
        state = restore(obs, params)
        actions = jnp.arange(env.num_actions, dtype=jnp.int32)
        totals, done = jnp.tile(jnp.where(mask, 0, -jnp.inf), (len(bases), 1)), 0
        for kept, samples in rounds:
            best = jnp.argsort(jnp.max(totals, axis=0), descending=True)[:kept]
            actions, totals = actions[best], totals[:, best]
            numbers = jnp.arange(done, done + samples, dtype=jnp.uint32)
            keys = jax.vmap(step_key, (None, 0))(reset_key(key), numbers)
            means = [mean_grades(env, base, actions, keys, state, params) for base in bases]
            totals = totals + samples * jnp.stack(means)
            done += samples
        return actions[jnp.argmax(jnp.max(totals, axis=0))], params

    return Policy(name, lambda key, params: params, act)


def mean_grades(
    env: Env, base: Policy, actions: jax.Array, keys: jax.Array, state: Any, params: Any
) -> jax.Array:
    """Mean grades of episodes that go on from `state` with each action, then with `base`.

    Args:
        env, base: the model, and what plays on.
        actions: [A] int32.
        keys: [N] of the episodes, the same for all actions: their differences vary less.
        state, params: of one episode.

    Returns:
        [A] float.
    """
    each = jax.vmap(partial(_grade, env, base), (None, 0, None, None))
    # A loop over actions: memory stays that of one action's episodes.
    return jax.lax.map(lambda action: jnp.mean(each(action, keys, state, params)), actions)


def _grade(
    env: Env, base: Policy, action: jax.Array, key: jax.Array, state: Any, params: Any
) -> jax.Array:
    """() grade of one such episode."""
    first = env.step(step_key(key, 0), state, action, params)
    carry = base.init(policy_key(reset_key(key), 0), params)
    begun = rollout.Play(key, first.state, carry, jnp.zeros_like(first.reward), jnp.int32(0))
    play, _ = jax.lax.while_loop(
        lambda now: ~env.is_terminal(now[0].state, params),
        lambda now: (rollout.advance(*now, env, base, params)[0], now[1] + 1),
        (begun, jnp.int32(1)),
    )
    return env.grade(play.state, params)
