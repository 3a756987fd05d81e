"""The ways to run PPO on devices: one agent, one agent on several devices, many agents.

A program is a pair of compiled functions, `start` and `segment`, that `loop.run` calls. They
are kept per env, config and devices: a second call with equal ones compiles nothing.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from lifedrift_jax.core import Env
from lifedrift_jax.rng import is_key
from train import ppo
from train.config import Hyper, PPOConfig
from train.types import Metrics, TrainState

AXIS = "devices"


class Program(NamedTuple):
    """What `loop.run` runs.

    Attributes:
        start: the first state; of many agents with a leading axis [R].
        segment: `(state, updates) -> (state, metrics)`, `updates` () int32.
        identity: [32] bytes, digest of all that decides the results.
    """

    start: Callable[[], TrainState]
    segment: Callable[[TrainState, Any], tuple[TrainState, Metrics]]
    identity: bytes


def single(key: jax.Array, env: Env, params: Any, config: PPOConfig, hyper: Hyper) -> Program:
    """One agent on one device: bit-equal to `ppo.train_jit`."""
    return Program(
        partial(_start, key, env, params, config, hyper),
        lambda state, updates: _segment(state, updates, env, params, config, hyper),
        _identity((key, params, hyper), env, config),
    )


def split_envs(
    key: jax.Array,
    env: Env,
    params: Any,
    config: PPOConfig,
    hyper: Hyper,
    devices: Sequence[jax.Device],
) -> Program:
    """One agent, its environments shared out among devices.

    Each device collects from `num_envs / D` of them and takes `1 / D` of every minibatch;
    gradients are averaged before they are clipped, so the learner's replicas stay equal, the
    batch is the same as on one device and so is the learning rate. Samples are shuffled
    within a device, so results differ from one device's beyond rounding.

    Raises:
        ValueError: the devices cannot share the envs or the minibatches equally.
    """
    check_split(config, len(devices))
    config = replace(config, device_axis=AXIS)
    shares = tuple(devices)
    return Program(
        partial(_split_start, key, params, hyper, env=env, config=config, devices=shares),
        lambda state, updates: _split_segment(
            state, updates, params, hyper, env=env, config=config, devices=shares
        ),
        _identity((key, params, hyper), env, config, len(shares)),
    )


def check_split(config: PPOConfig, count: int) -> None:
    """Raise ValueError unless `count` devices can share the envs and minibatches equally."""
    if config.num_envs % count:
        raise ValueError(f"num_envs is {config.num_envs}: use a multiple of {count} devices")
    share = config.batch_size // count
    if share % config.minibatches:
        raise ValueError(
            f"minibatches is {config.minibatches}: it must divide the {share} samples of each "
            f"of {count} devices"
        )


def many(
    keys: jax.Array,
    env: Env,
    params: Any,
    config: PPOConfig,
    hypers: Hyper,
    devices: Sequence[jax.Device],
    exact: bool = False,
) -> Program:
    """Many agents in one program, shared out among devices.

    Args:
        keys: [R] keys, one an agent; R a multiple of the number of devices.
        hypers: leaves [R].
        exact: train them one after another (`lax.map`), each bit-equal to a run alone;
            else side by side (`vmap`), equal up to the order of sums in matrix products.
    """
    options = {"env": env, "config": config, "devices": tuple(devices), "exact": exact}
    return Program(
        partial(_many_start, keys, params, hypers, **options),
        lambda states, updates: _many_segment(states, updates, params, hypers, **options),
        _identity((keys, params, hypers), env, config, exact),
    )


@partial(jax.jit, static_argnames=("env", "config"))
def _start(key, env, params, config, hyper):
    return ppo.init(key, env, params, config, hyper)


@partial(jax.jit, static_argnames=("env", "config"))
def _segment(state, updates, env, params, config, hyper):
    return ppo.segment(state, updates, env, params, config, hyper)


@partial(jax.jit, static_argnames=("env", "config", "devices"))
def _split_start(key, params, hyper, *, env, config, devices):
    def start(key, params, hyper):
        return ppo.init(key, env, params, config, hyper)

    whole = PartitionSpec()
    return _shared(start, devices, (whole, whole, whole), _state_specs())(key, params, hyper)


@partial(jax.jit, static_argnames=("env", "config", "devices"))
def _split_segment(state, updates, params, hyper, *, env, config, devices):
    def segment(state, updates, params, hyper):
        return ppo.segment(state, updates, env, params, config, hyper)

    whole, specs = PartitionSpec(), _state_specs()
    given, made = (specs, whole, whole, whole), (specs, whole)
    return _shared(segment, devices, given, made)(state, updates, params, hyper)


@partial(jax.jit, static_argnames=("env", "config", "devices", "exact"))
def _many_start(keys, params, hypers, *, env, config, devices, exact):
    def start(keys, params, hypers):
        return _each(
            lambda key, hyper: ppo.init(key, env, params, config, hyper), exact, keys, hypers
        )

    whole, part = PartitionSpec(), PartitionSpec(AXIS)
    return _shared(start, devices, (part, whole, part), part)(keys, params, hypers)


@partial(jax.jit, static_argnames=("env", "config", "devices", "exact"))
def _many_segment(states, updates, params, hypers, *, env, config, devices, exact):
    def segment(states, updates, params, hypers):
        def one(state, hyper):
            return ppo.segment(state, updates, env, params, config, hyper)

        return _each(one, exact, states, hypers)

    whole, part = PartitionSpec(), PartitionSpec(AXIS)
    given = (part, whole, whole, part)
    return _shared(segment, devices, given, part)(states, updates, params, hypers)


def _each(function: Callable[..., Any], exact: bool, *trees: Any) -> Any:
    """`function` of each entry of the trees' leading axis."""
    if exact:
        return jax.lax.map(lambda entries: function(*entries), trees)
    return jax.vmap(function)(*trees)


def _shared(function, devices, given, made):
    """`function` on each device, on its part of what PartitionSpec(AXIS) marks."""
    if len(devices) == 1:
        return function
    mesh = Mesh(np.array(devices), (AXIS,))
    return jax.shard_map(function, mesh=mesh, in_specs=given, out_specs=made, check_vma=False)


def _state_specs() -> Any:
    """Which parts of a state are split among devices: the environments."""
    whole, part = PartitionSpec(), PartitionSpec(AXIS)
    split = {"env_state", "obs", "env_keys"}
    return TrainState._make(part if name in split else whole for name in TrainState._fields)


def _identity(tree: Any, *settings: Any) -> bytes:
    """Digest of arrays, keys by their words, and of settings by how they are written."""
    digest = hashlib.sha256(repr((jax.tree.structure(tree), settings)).encode())
    for leaf in jax.tree.leaves(tree):
        data = np.asarray(jax.random.key_data(leaf) if is_key(leaf) else leaf)
        digest.update(repr((data.dtype, data.shape)).encode() + data.tobytes())
    return digest.digest()


def stacked(hypers: Sequence[Hyper]) -> Hyper:
    """Hypers of many agents as one, leaves [R] float32."""
    return jax.tree.map(lambda *x: jnp.stack(x), *[hyper.checked() for hyper in hypers])
