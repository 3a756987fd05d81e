"""Score a network on held-out episodes, inside compiled code."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from lifedrift_jax import rollout
from lifedrift_jax.core import Env, Policy
from lifedrift_jax.rng import episode_key, root_key
from lifedrift_jax.summary import moments
from train import networks, normalizer
from train.config import PPOConfig

NORMAL_95 = 1.96  # 97.5% quantile of the standard normal


class Estimate(NamedTuple):
    """A mean over episodes: () float32 each.

    Attributes:
        mean: 0 if there are no episodes.
        half_width: half its 95% interval, 1.96 standard errors; 0 for fewer than two.
    """

    mean: jax.Array
    half_width: jax.Array


class Evaluation(NamedTuple):
    """Episodes of the held-out seed, those that ended within the steps played.

    Attributes:
        episode_return: sum of the env's own rewards, whatever the objective.
        score: the grade, in [0, 1].
        length: steps.
        events: share of episodes with each of `env.event_names`, such as the cascade.
        finished: () int32, how many ended; the others are in no mean.
    """

    episode_return: Estimate
    score: Estimate
    length: Estimate
    events: dict[str, Estimate]
    finished: jax.Array


MODES = ("greedy", "sampled")


def policy(
    network: networks.ActorCritic, weights: Any, scaling: normalizer.Normalizer | None, mode: str
) -> Policy:
    """The network as a policy of `lifedrift_jax`; its carry is () bool, True = it samples.

    Args:
        network, weights: the network and its parameters.
        scaling: how its observations are scaled; None = not at all. It stays as it is.
        mode: "greedy" = most probable action, "sampled" = one drawn.
    """

    def act(key: jax.Array, obs: jax.Array, mask: jax.Array, carry: Any) -> tuple[jax.Array, Any]:
        seen = normalizer.scale(scaling, networks.features(obs, 0, network.feature_dims))
        logits, _ = network.apply(weights, seen)
        log_prob = networks.log_probs(logits, mask)
        drawn, best = networks.sample(key, log_prob), networks.greedy(log_prob)
        return jnp.where(carry, drawn, best), carry

    return Policy(f"ppo_{mode}", lambda key, params: jnp.bool_(mode == "sampled"), act)


def evaluate(
    network: networks.ActorCritic,
    weights: Any,
    scaling: normalizer.Normalizer | None,
    env: Env,
    params: Any,
    config: PPOConfig,
) -> tuple[Evaluation, Evaluation]:
    """Play episodes 0 .. eval_episodes - 1 of `eval_seed`, the same ones in every call.

    Returns:
        (greedy, sampled): evaluations of the two ways to act.
    """
    # Both at once: one program to compile.
    acting = policy(network, weights, scaling, "greedy")
    root, number = root_key(config.eval_seed), jnp.arange(config.eval_episodes)
    keys = jax.vmap(lambda i: episode_key(root, i))(jnp.concatenate([number, number]))
    plays = jax.vmap(lambda key: rollout.start(key, env, acting, params))(keys)
    plays = plays._replace(carry=jnp.repeat(jnp.array([False, True]), config.eval_episodes))

    def step(plays: rollout.Play, number: jax.Array) -> tuple[rollout.Play, None]:
        def one(play: rollout.Play) -> rollout.Play:
            return rollout.advance(play, number, env, acting, params)[0]

        return jax.vmap(one)(plays), None

    plays, _ = jax.lax.scan(step, plays, jnp.arange(config.eval_steps, dtype=jnp.int32))
    outcome = jax.vmap(lambda play: rollout.finish(play, env, params))(plays)
    halves = jax.tree.map(lambda x: x.reshape(len(MODES), -1), outcome)
    greedy, sampled = (
        summary(jax.tree.map(lambda x: x[mode], halves), env.event_names)  # noqa: B023
        for mode in range(len(MODES))
    )
    return greedy, sampled


def summary(outcome: rollout.Outcome, event_names: tuple[str, ...]) -> Evaluation:
    """Means over the finished episodes among `outcome`'s [N]."""
    finished = outcome.finished
    events = zip(event_names, outcome.events, strict=True)
    return Evaluation(
        estimate(outcome.episode_return, finished),
        estimate(outcome.score, finished),
        estimate(outcome.length, finished),
        {name: estimate(occurred, finished) for name, occurred in events},
        jnp.sum(finished, dtype=jnp.int32),
    )


def estimate(values: jax.Array, counted: jax.Array) -> Estimate:
    """Mean of `values` [N] where `counted` [N] is True."""
    count, mean, square = moments(values.astype(jnp.float32), counted)
    pairs = jnp.maximum(count - 1, 1) * jnp.maximum(count, 1)
    return Estimate(mean, NORMAL_95 * jnp.sqrt(square / pairs.astype(jnp.float32)))
