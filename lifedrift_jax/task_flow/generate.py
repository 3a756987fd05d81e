"""Instances of TaskFlow: the items that an episode is dealt."""

import jax
import jax.numpy as jnp

from lifedrift_jax import rng
from lifedrift_jax.core import pick, rounded
from lifedrift_jax.task_flow.tables import DOMAINS, EMPTY, NONE, PENDING, SLOTS
from lifedrift_jax.task_flow.types import Params, State

WORDINGS = 8  # of `State.wording`


def initial_state(key: jax.Array, params: Params) -> State:
    """The first state of an episode: `params.items` items, uniform in the tier's ranges.

    The item of slot i follows from the key and i alone. `key` is consumed.
    """
    slots = jnp.arange(SLOTS, dtype=jnp.int32)
    keys = jax.vmap(rng.part_key, (None, 0))(key, slots)
    words = [rng.uniform_pair(keys, lane) for lane in range(4)]
    (u_domain, u_wording), (u_priority, u_deadline), (u_uncertainty, u_value), costs = words
    used = slots < params.items
    domain = _integer(u_domain, jnp.int32(0), jnp.int32(len(DOMAINS) - 1))

    def drawn(range_: jax.Array, u: jax.Array, factor: jax.Array | None = None) -> jax.Array:
        value = range_[0] + rounded((range_[1] - range_[0]) * u.astype(range_.dtype))
        value = value if factor is None else value * pick(factor, domain)
        return jnp.where(used, value, 0)

    domains, zero = params.domains, jnp.zeros_like(slots)
    return State(
        status=jnp.where(used, jnp.int32(PENDING), jnp.int32(EMPTY)),
        domain=jnp.where(used, domain, 0),
        wording=jnp.where(used, _integer(u_wording, jnp.int32(0), jnp.int32(WORDINGS - 1)), 0),
        priority=drawn(params.priority, u_priority),
        deadline=jnp.where(used, _integer(u_deadline, *params.deadline), 0),
        uncertainty=drawn(params.uncertainty, u_uncertainty),
        value=drawn(params.value, u_value, domains.value),
        energy_cost=drawn(params.energy_cost, costs[0], domains.energy),
        budget_cost=drawn(params.budget_cost, costs[1], domains.budget),
        optimized=zero,
        energy=params.energy,
        budget=params.budget,
        health=jnp.ones_like(params.energy),
        step=jnp.zeros_like(params.max_steps),
        reward_sum=jnp.zeros_like(params.energy),
        last_item=jnp.full_like(params.max_steps, -1),
        last_outcome=jnp.full_like(params.max_steps, NONE),
    )


def _integer(u: jax.Array, low: jax.Array, high: jax.Array) -> jax.Array:
    """Uniform integer in [low, high], both included, from a uniform in (0, 1) of 16 bits."""
    return low + jnp.floor(u * (high - low + 1).astype(u.dtype)).astype(jnp.int32)
