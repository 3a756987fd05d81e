"""Proximal policy optimisation (Schulman et al. 2017, arXiv:1707.06347), end to end in jit.

    init -> [collect -> advantages -> epochs of gradient steps] * eval_every -> evaluation -> ...

`train_jit` is all of it in one program; `loop.train` is the same program in segments, with
progress and checkpoints between them. Each function here can be called and tested alone.

Randomness: environment i of a run draws from `fold_in(envs' key, i)` and from the count of
its own steps; the order of the samples from the count of epochs. Nothing depends on how
many environments, runs or segments there are.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from lifedrift_jax.core import Env, horizon
from lifedrift_jax.rng import IMPLEMENTATION, is_key, policy_key, reset_key
from train import advantages, evaluation, losses, networks, normalizer
from train.collect import collect, scaling, to_samples, wrapped
from train.config import Hyper, PPOConfig
from train.losses import LossParts, Samples
from train.shuffle import shuffled
from train.types import Metrics, TrainResult, TrainState

NETWORK, ENVS, SHUFFLE = range(3)  # what each key folded from a run's key is for


def train_jit(
    key: jax.Array, env: Env, params: Any, config: PPOConfig, hyper: Hyper
) -> TrainResult:
    """Train one agent in one compiled program. Pure; nothing is reported on the way.

    `jax.vmap` over key, params or hyper (alone or together) trains many agents in one
    program; with traced params set `config.eval_steps`.

    Args:
        key: the run's key, of `lifedrift_jax.root_key(seed)`; consumed.
        env, params: what to play; an env that does not reset by itself.
        config: sizes; another one is compiled anew.
        hyper: numbers; another one is not.

    Raises:
        ValueError: a size or number makes no sense; before anything is compiled.
    """
    config, hyper = checked(key, env, params, config, hyper)
    return _train(key, env, params, config, hyper)


def checked(
    key: jax.Array, env: Env, params: Any, config: PPOConfig, hyper: Hyper
) -> tuple[PPOConfig, Hyper]:
    """config with `eval_steps` filled in and hyper as arrays; refuse what cannot be run."""
    if not hasattr(key, "dtype"):
        raise ValueError(f"key is {key!r}: use lifedrift_jax.root_key(seed)")
    if not is_key(key) or str(jax.random.key_impl(key)) != IMPLEMENTATION:
        raise ValueError(f"key is {key.dtype}: use lifedrift_jax.root_key(seed), {IMPLEMENTATION}")
    wrapped(env)  # says what it cannot wrap
    for name, value in vars(hyper).items():
        if np.shape(value):
            raise ValueError(f"{name} has shape {np.shape(value)}: use one number, or jax.vmap")
    return filled_in(config, params), hyper.checked()


def filled_in(config: PPOConfig, params: Any) -> PPOConfig:
    """config with `eval_steps` set, to the longest episode of `params` if it was None."""
    if config.eval_steps is not None:
        return config
    try:
        return replace(config, eval_steps=horizon(params))
    except ValueError:
        raise ValueError("params are traced here: set PPOConfig.eval_steps") from None


@partial(jax.jit, static_argnames=("env", "config"))
def _train(key, env, params, config, hyper):
    state = init(key, env, params, config, hyper)

    def body(state: TrainState, updates: jax.Array) -> tuple[TrainState, Metrics]:
        return segment(state, updates, env, params, config, hyper)

    # The row before training is a segment without updates, so nothing is compiled twice.
    updates = jnp.full(config.num_evaluations + 1, config.eval_every, jnp.int32).at[0].set(0)
    return TrainResult(*jax.lax.scan(body, state, updates))


def init(key: jax.Array, env: Env, params: Any, config: PPOConfig, hyper: Hyper) -> TrainState:
    """First state of a run; `key` is consumed."""
    envs_key = jax.random.fold_in(key, ENVS)
    env_keys = jax.vmap(lambda i: jax.random.fold_in(envs_key, i))(_env_numbers(config))
    # Offset by both constants of rng: the reset of a first step that ends draws otherwise.
    first_keys = jax.vmap(lambda key: policy_key(reset_key(key), 0))(env_keys)
    obs, env_state = wrapped(env).reset(jax.vmap(reset_key)(first_keys), params)
    network = networks.network(env, config.hidden_sizes, config.encoder)
    seen = networks.features(obs, 1, network.feature_dims)
    weights = networks.initial(network, jax.random.fold_in(key, NETWORK), seen[0])
    return TrainState(
        params=weights,
        optimizer=losses.optimizer(config, hyper).init(weights),
        normalizer=normalizer.empty(seen.shape[-1]),
        env_state=env_state,
        obs=obs,
        env_keys=env_keys,
        key=key,
        update=jnp.int32(0),
    )


def segment(
    state: TrainState, updates: jax.Array, env: Env, params: Any, config: PPOConfig, hyper: Hyper
) -> tuple[TrainState, Metrics]:
    """`updates` (() int32) updates, then an evaluation."""

    def body(_, carry: tuple[TrainState, LossParts]) -> tuple[TrainState, LossParts]:
        state, total = carry
        state, parts = update(state, env, params, config, hyper)
        return state, jax.tree.map(jnp.add, total, parts)

    zeros = LossParts(*[jnp.float32(0)] * len(LossParts._fields))
    state, total = jax.lax.fori_loop(0, updates, body, (state, zeros))
    share = 1 / jnp.maximum(updates, 1).astype(jnp.float32)
    greedy, sampled = evaluation.evaluate(
        networks.network(env, config.hidden_sizes, config.encoder),
        state.params,
        scaling(state, config),
        env,
        params,
        config,
    )
    parts = jax.tree.map(lambda x: x * share, total)
    return state, Metrics(state.update, parts, greedy, sampled)


def update(
    state: TrainState, env: Env, params: Any, config: PPOConfig, hyper: Hyper
) -> tuple[TrainState, LossParts]:
    """One update: collect, then all epochs; and the mean of the loss's parts."""
    after, trajectory, last_value = collect(state, env, params, config, hyper)
    samples = to_samples(trajectory, last_value, scaling(state, config), hyper)
    order_key = jax.random.fold_in(state.key, SHUFFLE)
    if config.device_axis is not None:
        order_key = jax.random.fold_in(order_key, jax.lax.axis_index(config.device_axis))

    def epoch(learner: tuple[Any, Any], number: jax.Array) -> tuple[tuple[Any, Any], LossParts]:
        order = shuffled(jax.random.fold_in(order_key, number), samples.action.shape[0])
        minibatches = order.reshape(config.minibatches, -1)
        step = partial(gradient_step, samples=samples, env=env, config=config, hyper=hyper)
        return jax.lax.scan(step, learner, minibatches)

    numbers = state.update * config.epochs + jnp.arange(config.epochs)
    (weights, optimizer), parts = jax.lax.scan(epoch, (state.params, state.optimizer), numbers)
    if config.normalize_observations:
        seen = trajectory.features.reshape(-1, trajectory.features.shape[-1])
        merged = normalizer.merge(state.normalizer, seen, config.device_axis)
        after = after._replace(normalizer=merged)
    after = after._replace(params=weights, optimizer=optimizer, update=state.update + 1)
    return after, jax.tree.map(jnp.mean, parts)


def gradient_step(
    learner: tuple[Any, Any],
    rows: jax.Array,
    samples: Samples,
    env: Env,
    config: PPOConfig,
    hyper: Hyper,
) -> tuple[tuple[Any, Any], LossParts]:
    """One step of the optimiser on the samples of `rows` [N / M] int32.

    Args:
        learner: (network parameters, optimiser state).
    """
    weights, state = learner
    minibatch = jax.tree.map(lambda x: x[rows], samples)
    normalized = advantages.normalized(minibatch.advantage, config.device_axis)
    network = networks.network(env, config.hidden_sizes, config.encoder)
    grads, parts = losses.gradient(
        weights, minibatch._replace(advantage=normalized), network, hyper
    )
    if config.device_axis is not None:
        grads, parts = jax.lax.pmean((grads, parts), config.device_axis)
    changes, state = losses.optimizer(config, hyper).update(grads, state)
    return (optax.apply_updates(weights, changes), state), parts


def _env_numbers(config: PPOConfig) -> jax.Array:
    """Numbers of the environments that are here: all, or this device's share of them."""
    if config.device_axis is None:
        return jnp.arange(config.num_envs)
    share = config.num_envs // jax.lax.axis_size(config.device_axis)
    return share * jax.lax.axis_index(config.device_axis) + jnp.arange(share)
