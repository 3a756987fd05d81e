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

from lifedrift_jax.core import Env, Policy, select
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

    def grade_of(
        base: Policy, action: jax.Array, key: jax.Array, state: Any, params: Any
    ) -> jax.Array:
        """Grade of one episode that begins with `action`; no draw depends on the action."""

        def moved(state: Any, action: jax.Array, step: jax.Array) -> Any:
            after, _ = env.transition(state, action, env.draw(step_key(key, step)), params)
            return select(env.is_terminal(state, params), state, after)

        def play_on(play: tuple[Any, Any, jax.Array]) -> tuple[Any, Any, jax.Array]:
            state, carry, step = play
            obs, mask = env.observe(state, params), env.action_mask(state, params)
            action, carry = base.act(policy_key(key, step), obs, mask, carry)
            return moved(state, action, step), carry, step + 1

        first = moved(state, action, jnp.int32(0))
        carry = base.init(policy_key(reset_key(key), 0), params)
        state, _, _ = jax.lax.while_loop(
            lambda play: ~env.is_terminal(play[0], params), play_on, (first, carry, jnp.int32(1))
        )
        return env.grade(state, params)

    def mean_grades(
        base: Policy, actions: jax.Array, keys: jax.Array, state: Any, params: Any
    ) -> jax.Array:
        """[A] mean over episodes with the draws of `keys`, the same for all actions."""
        each = jax.vmap(partial(grade_of, base), (None, 0, None, None))
        # A loop over actions: memory stays that of one action's samples.
        return jax.lax.map(lambda action: jnp.mean(each(action, keys, state, params)), actions)

    def act(key: jax.Array, obs: jax.Array, mask: jax.Array, params: Any) -> tuple[jax.Array, Any]:
        state = restore(obs, params)
        actions = jnp.arange(env.num_actions, dtype=jnp.int32)
        totals, done = jnp.tile(jnp.where(mask, 0, -jnp.inf), (len(bases), 1)), 0
        for kept, samples in rounds:
            best = jnp.argsort(jnp.max(totals, axis=0), descending=True)[:kept]
            actions, totals = actions[best], totals[:, best]
            numbers = jnp.arange(done, done + samples, dtype=jnp.uint32)
            keys = jax.vmap(step_key, (None, 0))(reset_key(key), numbers)
            means = [mean_grades(base, actions, keys, state, params) for base in bases]
            totals = totals + samples * jnp.stack(means)
            done += samples
        return actions[jnp.argmax(jnp.max(totals, axis=0))], params

    return Policy(name, lambda key, params: params, act)
