"""What an observation of TaskFlow says: its columns by name, and a state behind it."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from lifedrift_jax.task_flow import (
    ACTION_TYPES,
    DOMAINS,
    GLOBAL_COLUMNS,
    ITEM_COLUMNS,
    MAX_REWARD,
    SLOTS,
    STATUSES,
    Params,
    State,
    failure_chance,
)


class Seen(NamedTuple):
    """An observation, read.

    Attributes:
        item: column of ITEM_COLUMNS -> [12] float.
        world: column of GLOBAL_COLUMNS -> () float.
        legal: [4, 12] bool, rows are ACTION_TYPES.
        deadline: [12] float, steps.
        left: () float, steps left in the episode.
        risk: [12] float, chance that an execution fails (above 1: surely).
    """

    item: dict[str, jax.Array]
    world: dict[str, jax.Array]
    legal: jax.Array
    deadline: jax.Array
    left: jax.Array
    risk: jax.Array


def read(obs: jax.Array, mask: jax.Array, params: Params) -> Seen:
    """What an observation [12, 27] and a mask [48] say."""
    columns = dict(zip((*ITEM_COLUMNS, *GLOBAL_COLUMNS), obs.T, strict=True))
    item = {name: columns[name] for name in ITEM_COLUMNS}
    world = {name: obs[0, len(ITEM_COLUMNS) + i] for i, name in enumerate(GLOBAL_COLUMNS)}
    factor = sum(
        (item[name] * params.domains.failure[i] for i, name in enumerate(DOMAINS)),
        start=jnp.zeros(SLOTS, obs.dtype),
    )
    return Seen(
        item=item,
        world=world,
        legal=mask.reshape(len(ACTION_TYPES), SLOTS),
        deadline=jnp.round(item["deadline"] * params.max_steps.astype(obs.dtype)),
        left=jnp.round(world["time"] * params.max_steps.astype(obs.dtype)),
        risk=failure_chance(item["uncertainty"], factor, params.failure_scale),
    )


def state_from_observation(obs: jax.Array, params: Params) -> State:
    """A state that goes on as the one observed, if items are told apart by what is left.

    Items in the queue are as they are, to rounding. Which slots the items that have left had
    is not observed: they get the free slots of lowest number.

    Args:
        obs: [12, 27] float32, see `TaskFlow`.
        params: the episode's params, whose float dtype the state gets.
    """
    seen = read(obs, jnp.ones(len(ACTION_TYPES) * SLOTS, bool), params)
    real, status = params.energy.dtype, _statuses(seen, params)
    item = {name: column.astype(real) for name, column in seen.item.items()}
    world = {name: value.astype(real) for name, value in seen.world.items()}
    zeros = jnp.zeros_like(status)
    return State(
        status=status,
        domain=jnp.argmax(jnp.stack([item[name] for name in DOMAINS]), axis=0).astype(jnp.int32),
        wording=zeros,
        priority=item["priority"],
        deadline=seen.deadline.astype(jnp.int32),
        uncertainty=item["uncertainty"],
        value=item["value"] * MAX_REWARD,
        energy_cost=item["energy_cost"] * params.energy,
        budget_cost=item["budget_cost"] * params.budget,
        optimized=(item["optimized"] > 0).astype(jnp.int32),
        energy=world["energy"] * params.energy,
        budget=world["budget"] * params.budget,
        health=world["health"],
        step=params.max_steps - _whole(world["time"], params.max_steps),
        reward_sum=world["reward_sum"] * (MAX_REWARD * params.max_steps.astype(real)),
        last_item=jnp.full_like(params.max_steps, -1),
        last_outcome=jnp.zeros_like(params.max_steps),
    )


def _statuses(seen: Seen, params: Params) -> jax.Array:
    """[12] int32 indices into STATUSES."""
    queued = [(name, seen.item[name] > 0) for name in ("pending", "held", "late")]
    in_queue = jnp.any(jnp.stack([holds for _, holds in queued]), axis=0)
    rank = jnp.cumsum(~in_queue, dtype=jnp.int32) - 1  # among the slots that are free
    completed = _whole(seen.world["completed"], params.items)
    left = params.items - jnp.sum(in_queue, dtype=jnp.int32)
    failed = _whole(seen.world["failed"], params.items) - jnp.sum(queued[-1][1], dtype=jnp.int32)
    status = jnp.zeros(SLOTS, jnp.int32)
    for name, holds in (
        ("delegated", ~in_queue & (rank < left)),
        ("failed", ~in_queue & (rank < completed + failed)),
        ("completed", ~in_queue & (rank < completed)),
        *queued,
    ):
        status = jnp.where(holds, jnp.int32(STATUSES.index(name)), status)
    return status


def _whole(share: jax.Array, of: jax.Array) -> jax.Array:
    """() int32, the count that is this share of another."""
    return jnp.round(share * of.astype(share.dtype)).astype(jnp.int32)
