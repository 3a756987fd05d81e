"""Play the environments and turn what was seen into samples."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from lifedrift_jax.core import Env
from lifedrift_jax.rng import policy_key, step_key
from lifedrift_jax.wrappers import BatchAutoReset, EpisodeStats
from train import advantages, networks, normalizer
from train.config import Hyper, PPOConfig
from train.losses import Samples
from train.types import TrainState, Trajectory


def wrapped(env: Env) -> BatchAutoReset:
    """The env as it is collected from: a batch that goes on, with returns and scores."""
    return BatchAutoReset(EpisodeStats(env))


def scaling(state: TrainState, config: PPOConfig) -> normalizer.Normalizer | None:
    """How this state's network sees observations; None = as they are."""
    return state.normalizer if config.normalize_observations else None


def collect(
    state: TrainState, env: Env, params: Any, config: PPOConfig, hyper: Hyper
) -> tuple[TrainState, Trajectory, jax.Array]:
    """Play `num_steps` steps in every env.

    Returns:
        (state with the envs moved on, [T, E] trajectory, [E] values of the last obs).
    """
    envs = wrapped(env)
    network = networks.network(env, config.hidden_sizes, config.encoder)
    look = partial(_look, network, state.params, scaling(state, config))

    def step(carry: tuple[Any, jax.Array], number: jax.Array) -> tuple[Any, Trajectory]:
        env_state, obs = carry
        mask = envs.action_mask(env_state, params)
        logits, value = look(obs)
        log_probs = networks.log_probs(logits, mask)
        action = jax.vmap(networks.sample)(policy_key(state.env_keys, number), log_probs)
        after = envs.step(step_key(state.env_keys, number), env_state, action, params)
        final_value = jax.lax.cond(
            jnp.any(after.truncated),
            lambda: jnp.where(after.truncated, look(after.info["final_observation"])[1], 0),
            lambda: jnp.zeros_like(value),
        )
        return (after.state, after.obs), Trajectory(
            features=networks.features(obs, 1, network.feature_dims),
            mask=mask,
            action=action,
            log_prob=networks.log_prob_of(log_probs, action),
            value=value,
            final_value=final_value,
            reward=objective(after.reward, after.info["score"], after.terminated, hyper),
            terminated=after.terminated,
            truncated=after.truncated,
        )

    numbers = state.update * config.num_steps + jnp.arange(config.num_steps)
    (env_state, obs), trajectory = jax.lax.scan(step, (state.env_state, state.obs), numbers)
    return state._replace(env_state=env_state, obs=obs), trajectory, look(obs)[1]


def objective(reward: jax.Array, score: jax.Array, ended: jax.Array, hyper: Hyper) -> jax.Array:
    """What a step is worth to the learner: its reward, and where the task ended its score.

    An episode cut from outside pays no score: the value of its last observation stands for
    what was still to come.
    """
    return hyper.reward_weight * reward + hyper.grade_weight * jnp.where(ended, score, 0)


def to_samples(
    trajectory: Trajectory,
    last_value: jax.Array,
    scaling: normalizer.Normalizer | None,
    hyper: Hyper,
) -> Samples:
    """A [T, E] trajectory as [T * E] samples, with advantages and targets."""
    x = trajectory
    each_env = partial(jax.vmap, in_axes=1, out_axes=1)
    next_values = jax.vmap(advantages.following, (1, 0, 1, 1), 1)(
        x.value, last_value, x.final_value, x.truncated
    )
    gae = each_env(partial(advantages.gae, gamma=hyper.gamma, gae_lambda=hyper.gae_lambda))
    advantage = gae(x.reward, x.value, next_values, x.terminated, x.truncated)
    features = normalizer.scale(scaling, x.features)
    samples = Samples(features, x.mask, x.action, x.log_prob, advantage, advantage + x.value)
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), samples)


def _look(
    network: networks.ActorCritic,
    weights: Any,
    scaling: normalizer.Normalizer | None,
    obs: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """(logits [E, A], values [E]) of observations [E, ...]."""
    seen = normalizer.scale(scaling, networks.features(obs, 1, network.feature_dims))
    return network.apply(weights, seen)  # type: ignore[return-value]
