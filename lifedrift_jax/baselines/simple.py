"""Policies for any environment: uniform random, constant, round-robin."""

import itertools
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp

from lifedrift_jax.core import Env, Policy
from lifedrift_jax.rng import uniform_index


@lru_cache
def random() -> Policy:
    """Uniform over the legal actions."""

    def act(key: jax.Array, obs: jax.Array, mask: jax.Array, carry: Any) -> tuple[jax.Array, Any]:
        # Action r is the first whose count of legal actions up to it exceeds the rank. Written
        # action by action, since scans and reductions over a short last axis do not vectorise.
        legal = list(itertools.accumulate(mask[i].astype(jnp.int32) for i in range(mask.shape[0])))
        rank = uniform_index(key, legal[-1])
        passed = ((count <= rank).astype(jnp.int32) for count in legal)
        return sum(passed, start=jnp.int32(0)), carry

    return Policy("random", lambda key, params: (), act)


@lru_cache
def constant(action: int, name: str | None = None) -> Policy:
    """Always the action of index `action`; `name` is how it is written in tables."""

    def act(key: jax.Array, obs: jax.Array, mask: jax.Array, carry: Any) -> tuple[jax.Array, Any]:
        return jnp.int32(action), carry

    return Policy(f"constant:{action if name is None else name}", lambda key, params: (), act)


@lru_cache
def round_robin(env: Env) -> Policy:
    """All actions in turn, from index 0; illegal ones are played too (and are invalid)."""

    def act(key: jax.Array, obs: jax.Array, mask: jax.Array, carry: Any) -> tuple[jax.Array, Any]:
        return carry, (carry + 1) % env.num_actions

    return Policy("round_robin", lambda key, params: jnp.int32(0), act)
