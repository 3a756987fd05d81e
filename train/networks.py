"""The actor-critic network, and the masked categorical distribution of its logits."""

from collections.abc import Sequence
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np


class ActorCritic(nn.Module):
    """Two separate stacks of tanh layers: one gives logits, the other the value.

    Attributes:
        num_actions: A.
        hidden_sizes: widths of the hidden layers of each stack.
    """

    num_actions: int
    hidden_sizes: Sequence[int]

    @nn.compact
    def __call__(self, features: jax.Array) -> tuple[jax.Array, jax.Array]:
        """`features` [..., F] float32 -> (logits [..., A], values [...])."""
        return self._stack(features, self.num_actions, 0.01, "actor"), jnp.squeeze(
            self._stack(features, 1, 1.0, "critic"), -1
        )

    def _stack(self, x: jax.Array, outputs: int, scale: float, name: str) -> jax.Array:
        # Orthogonal with these scales: the first policy is close to uniform.
        for i, size in enumerate(self.hidden_sizes):
            x = jnp.tanh(_dense(size, np.sqrt(2), f"{name}_{i}")(x))
        return _dense(outputs, scale, f"{name}_out")(x)


def _dense(size: int, scale: float, name: str) -> nn.Dense:
    return nn.Dense(size, kernel_init=nn.initializers.orthogonal(scale), name=name)


def features(obs: jax.Array, batch_dims: int = 1) -> jax.Array:
    """Observations as [batch..., F] float32, every axis after the batch's flattened."""
    return obs.reshape(*obs.shape[:batch_dims], -1).astype(jnp.float32)


def log_probs(logits: jax.Array, mask: jax.Array) -> jax.Array:
    """Log-probabilities of a categorical distribution over the legal actions.

    Args:
        logits: [..., A] float.
        mask: [..., A] bool, True = legal, at least one in each row.

    Returns:
        [..., A]; -inf, with gradient 0, for illegal actions. In compiled code a row without
        a legal action is -inf throughout, which makes PPO's loss NaN.

    Raises:
        ValueError: a concrete mask has a row without a legal action.
    """
    if not isinstance(mask, jax.core.Tracer) and not np.all(np.any(mask, -1)):
        raise ValueError(f"mask is {np.asarray(mask).tolist()}: each row needs a legal action")
    top = jnp.max(logits, -1, keepdims=True, where=mask, initial=-jnp.inf)
    # Zeros in place of what is not taken: 0 * inf is NaN in the gradient of a `where`.
    shifted = jnp.where(mask, logits - jax.lax.stop_gradient(top), 0)
    total = jnp.sum(jnp.exp(shifted), -1, keepdims=True, where=mask)
    return jnp.where(mask, shifted - jnp.log(total), -jnp.inf)


def entropy(log_prob: jax.Array) -> jax.Array:
    """Entropy of `log_probs(...)` [..., A], in nats: [...]; 0 for a single legal action."""
    possible = log_prob > -jnp.inf
    finite = jnp.where(possible, log_prob, 0)
    return -jnp.sum(jnp.where(possible, jnp.exp(finite) * finite, 0), -1)


def log_prob_of(log_prob: jax.Array, action: jax.Array) -> jax.Array:
    """The entry of `log_probs(...)` [..., A] at `action` [...] integer: [...]."""
    # A comparison instead of a gather, whose gradient is a scatter, slow on CPU.
    number = jax.lax.broadcasted_iota(action.dtype, log_prob.shape, log_prob.ndim - 1)
    chosen = number == action[..., None]
    return jnp.sum(jnp.where(chosen, log_prob, 0), -1)


def sample(key: jax.Array, log_prob: jax.Array) -> jax.Array:
    """One action drawn from `log_probs(...)` [A]: () int32. `key` is consumed."""
    noise = jax.random.gumbel(key, log_prob.shape, log_prob.dtype)
    return jnp.argmax(log_prob + noise, -1).astype(jnp.int32)


def greedy(log_prob: jax.Array) -> jax.Array:
    """The most probable action of `log_probs(...)` [..., A], the first of equals: int32."""
    return jnp.argmax(log_prob, -1).astype(jnp.int32)


def network(env: Any, hidden_sizes: Sequence[int]) -> ActorCritic:
    """The network for an env's actions."""
    return ActorCritic(env.num_actions, tuple(hidden_sizes))
