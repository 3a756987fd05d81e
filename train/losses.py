"""PPO's loss, its gradient and the optimiser."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from train import networks
from train.config import Hyper, PPOConfig

ADAM_EPSILON = 1e-5  # as in the PPO of OpenAI Baselines
CACHED_ROWS = 4096  # on CPU, rows whose activations stay in the cache


class Samples(NamedTuple):
    """What the loss needs of each step, [N] rows.

    Attributes:
        features: [N, F] or [N, n, F] float32, as the network sees them.
        mask: [N, A] bool, True = legal.
        action: [N] int32.
        log_prob: [N] float, of the action when it was taken.
        advantage: [N] float.
        target: [N] float, of the value.
    """

    features: jax.Array
    mask: jax.Array
    action: jax.Array
    log_prob: jax.Array
    advantage: jax.Array
    target: jax.Array


class LossParts(NamedTuple):
    """Parts of the loss and measures of the step, () float each, means over samples.

    Attributes:
        policy_loss: clipped surrogate, negative.
        value_loss: half the mean squared error of the value.
        entropy: of the policy, nats.
        approx_kl: estimate of KL(old || new), mean of ratio - 1 - log ratio (Schulman,
            "Approximating KL Divergence", 2020).
        clip_fraction: share of ratios that are clipped.
    """

    policy_loss: jax.Array
    value_loss: jax.Array
    entropy: jax.Array
    approx_kl: jax.Array
    clip_fraction: jax.Array


def clipped_surrogate(ratio: jax.Array, advantage: jax.Array, clip: jax.Array | float) -> jax.Array:
    """PPO's objective of each sample (Schulman et al. 2017, arXiv:1707.06347, eq. 7), [N]."""
    return jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - clip, 1 + clip) * advantage)


def loss(
    params: Any, samples: Samples, network: networks.ActorCritic, hyper: Hyper
) -> tuple[jax.Array, LossParts]:
    """(what is minimised, its parts); `samples.advantage` is taken as it is.

    Before the first gradient step ratios are 1, up to how far a matrix product rounds
    otherwise for another number of rows (2.4e-7 seen with the default sizes).
    """
    outputs: tuple[jax.Array, jax.Array] = network.apply(params, samples.features)  # type: ignore[assignment]
    logits, value = outputs
    log_probs = networks.log_probs(logits, samples.mask)
    log_ratio = networks.log_prob_of(log_probs, samples.action) - samples.log_prob
    ratio = jnp.exp(log_ratio)
    surrogate = clipped_surrogate(ratio, samples.advantage, hyper.clip)
    error = value - samples.target
    parts = LossParts(
        policy_loss=-jnp.mean(surrogate),
        value_loss=0.5 * jnp.mean(error * error),
        entropy=jnp.mean(networks.entropy(log_probs)),
        approx_kl=jnp.mean(ratio - 1 - log_ratio),
        clip_fraction=jnp.mean((jnp.abs(ratio - 1) > hyper.clip).astype(jnp.float32)),
    )
    total = parts.policy_loss + hyper.value * parts.value_loss - hyper.entropy * parts.entropy
    return total, parts


def gradient(
    params: Any, samples: Samples, network: networks.ActorCritic, hyper: Hyper
) -> tuple[Any, LossParts]:
    """Gradient of the mean loss of `samples`, and the loss's parts.

    On CPU a large batch is done in equal parts, one after another, whose mean it is: their
    activations stay in the cache, where those of 65,536 samples do not.
    """
    one = jax.grad(partial(loss, network=network, hyper=hyper), has_aux=True)
    rows = samples.action.shape[0]
    parts = equal_parts(rows) if jax.default_backend() == "cpu" else 1
    if parts == 1:
        return one(params, samples)
    split = jax.tree.map(lambda x: x.reshape(parts, -1, *x.shape[1:]), samples)
    first = jax.tree.map(
        jnp.zeros_like, jax.eval_shape(one, params, Samples(*(x[0] for x in split)))
    )
    summed, _ = jax.lax.scan(
        lambda total, part: (jax.tree.map(jnp.add, total, one(params, part)), None), first, split
    )
    return jax.tree.map(lambda x: x * (1 / parts), summed)


def equal_parts(rows: int) -> int:
    """Smallest number of equal parts of at most CACHED_ROWS rows, 1 if all are tiny."""
    least = -(-rows // CACHED_ROWS)
    return next((n for n in range(least, 2 * least + 1) if rows % n == 0), 1)


def learning_rate(step: jax.Array, config: PPOConfig, hyper: Hyper) -> jax.Array:
    """Learning rate of gradient step `step` (() int, from 0 to config.gradient_steps - 1).

    It falls linearly by the same amount each gradient step, from `learning_rate` at step 0
    towards learning_rate * (1 - decay), which it would reach at step `gradient_steps`: one
    step after the last. So with decay 1 no step has rate 0.
    """
    left = (config.gradient_steps - step).astype(jnp.float32) * (1 / config.gradient_steps)
    # Not 1 - decay * (1 - left): with decay 1 the last rates of a very long run stay above 0.
    decay = hyper.learning_rate_decay
    return hyper.learning_rate * ((1 - decay) + decay * left)


def optimizer(config: PPOConfig, hyper: Hyper) -> optax.GradientTransformation:
    """Clip by the global norm, then Adam with the schedule; its count is the position.

    Everything is flattened into one vector, for fewer and longer kernels.
    """
    schedule: Callable[[Any], Any] = partial(learning_rate, config=config, hyper=hyper)
    return optax.flatten(
        optax.chain(
            optax.clip_by_global_norm(hyper.max_grad_norm),
            optax.scale_by_adam(eps=ADAM_EPSILON),
            optax.scale_by_learning_rate(schedule),
        )
    )
