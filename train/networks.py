"""The actor-critic networks, and the masked categorical distribution of their logits."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from lifedrift_jax.rng import word
from train.config import ENCODERS


class ActorCritic(nn.Module):
    """Two separate stacks of tanh layers: one gives logits, the other the value.

    Attributes:
        num_actions: A.
        hidden_sizes: widths of the hidden layers of each stack.
        feature_dims: axes of one observation's features, see `features`.
    """

    num_actions: int
    hidden_sizes: Sequence[int]
    feature_dims: ClassVar[int] = 1

    @nn.compact
    def __call__(self, features: jax.Array) -> tuple[jax.Array, jax.Array]:
        """`features` [..., F] float32 -> (logits [..., A], values [...])."""
        logits = self._stack(features, self.num_actions, "actor")
        return logits, jnp.squeeze(self._stack(features, 1, "critic"), -1)

    def _stack(self, x: jax.Array, outputs: int, name: str) -> jax.Array:
        for i, size in enumerate(self.hidden_sizes):
            x = jnp.tanh(nn.Dense(size, name=f"{name}_{i}")(x))
        return nn.Dense(outputs, name=f"{name}_{OUT}")(x)


class ItemActorCritic(ActorCritic):
    """For n interchangeable items, the rows of an observation, and actions of types on items.

    Permuting the items permutes the logits of each type alike and leaves the value: a hidden
    layer sees, for each item, its row and the mean and maximum of all rows (Zaheer et al. 2017,
    "Deep Sets", arXiv:1703.06114).
    """

    feature_dims: ClassVar[int] = 2

    @nn.compact
    def __call__(self, features: jax.Array) -> tuple[jax.Array, jax.Array]:
        """`features` [..., n, F] float32 -> (logits [..., A], values [...]).

        Action `type * n + item` is of that type on that item.

        Raises:
            ValueError: n does not divide A.
        """
        items = features.shape[-2]
        if self.num_actions % items:
            raise ValueError(
                f"encoder 'items' needs a multiple of n actions for observations [n, F]: here are "
                f"{self.num_actions} actions for {list(features.shape[-2:])}"
            )
        logits = nn.Dense(self.num_actions // items, name=f"actor_{OUT}")(self._rows(features))
        logits = jnp.swapaxes(logits, -1, -2).reshape(*logits.shape[:-2], self.num_actions)
        for size in self.hidden_sizes[:1]:
            features = jnp.tanh(nn.Dense(size, name="critic_rows")(features))
        return logits, jnp.squeeze(self._stack(pooled(features), 1, "critic"), -1)

    def _rows(self, x: jax.Array) -> jax.Array:
        """The actor's hidden layers: [..., n, F] -> [..., n, the last width]."""
        for i, size in enumerate(self.hidden_sizes):
            own = nn.Dense(size, name=f"actor_{i}")(x)
            shared = nn.Dense(size, name=f"actor_pooled_{i}")(pooled(x))
            x = jnp.tanh(own + shared[..., None, :])
        return x


def pooled(rows: jax.Array) -> jax.Array:
    """Mean and maximum over rows [..., n, F], [..., 2 F]; the same for rows in any order."""
    return jnp.concatenate([jnp.mean(rows, -2), jnp.max(rows, -2)], -1)


NETWORKS = dict(zip(ENCODERS, (ActorCritic, ItemActorCritic), strict=True))
OUT = "out"  # ends the name of a stack's last layer
# Layer -> scale of its orthogonal kernel; with these the first policy is close to uniform.
SCALES: dict[str, float] = {f"actor_{OUT}": 0.01, f"critic_{OUT}": 1.0}
HIDDEN_SCALE = math.sqrt(2)


def initial(network: ActorCritic, key: jax.Array, features: jax.Array) -> Any:
    """First parameters: orthogonal kernels, biases 0. `key` is consumed.

    All kernels are cut from one draw of normals: flax's own initialisers, each with a
    generator of its own, take seconds to compile.

    Args:
        features: [F] or [n, F] float32, for its size.
    """
    layers = jax.eval_shape(network.init, key, features)["params"]
    sizes = {name: math.prod(layer["kernel"].shape) for name, layer in layers.items()}
    normals = jax.random.normal(key, (sum(sizes.values()),), jnp.float32)
    params, first = {}, 0
    for name, layer in layers.items():
        part = normals[first : first + sizes[name]].reshape(layer["kernel"].shape)
        kernel = SCALES.get(name, HIDDEN_SCALE) * _orthogonal(part)
        params[name] = {"kernel": kernel, "bias": jnp.zeros_like(layer["bias"])}
        first += sizes[name]
    return {"params": params}


# Never batched: on CPU, several batched QRs at a time can wait for each other's threads for ever
# (seen with jaxlib 0.10.2), and one matrix at a time has the same bits in any batch.
@jax.custom_batching.sequential_vmap
def _orthogonal(normals: jax.Array) -> jax.Array:
    """[m, n] with orthonormal columns, or rows if m < n, from independent normals [m, n].

    The QR factor, with the signs that make it uniform (Mezzadri 2007, arXiv:math-ph/0609050).
    """
    tall = normals if normals.shape[0] >= normals.shape[1] else normals.T
    q, r = jnp.linalg.qr(tall)
    q = q * jnp.sign(jnp.diagonal(r))[None]
    return q if normals.shape[0] >= normals.shape[1] else q.T


def features(obs: jax.Array, batch_dims: int = 1, dims: int = 1) -> jax.Array:
    """Observations as features of a network, float32; `dims` is its `feature_dims`.

    1: [batch..., F], every axis after the batch's flattened; 2: [batch..., n, F], as they are.

    Raises:
        ValueError: `dims` is 2 and an observation is no matrix.
    """
    batch, shape = obs.shape[:batch_dims], obs.shape[batch_dims:]
    if dims == 1:
        return obs.reshape(*batch, -1).astype(jnp.float32)
    if len(shape) != dims:
        raise ValueError(f"encoder 'items' needs observations [n, F]: here they are {list(shape)}")
    return obs.astype(jnp.float32)


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
    """One action drawn from `log_probs(...)` [A]: () int32. `key` is consumed.

    The inverse of the distribution function at one uniform of 22 bits, so probabilities are
    met to 2.4e-7; an illegal action is never drawn, whatever rounding does.
    """
    # Midpoints of 22 bits: times `top` they round to less than `top`, so an entry is above.
    uniform = ((word(key, 0) >> 10).astype(jnp.float32) + 0.5) * jnp.float32(2**-22)
    cumulated = jnp.where(log_prob > -jnp.inf, jnp.cumsum(jnp.exp(log_prob)), 0)
    top = jnp.max(cumulated)
    return jnp.argmax(cumulated > uniform * top, -1).astype(jnp.int32)


def greedy(log_prob: jax.Array) -> jax.Array:
    """The most probable action of `log_probs(...)` [..., A], the first of equals: int32."""
    return jnp.argmax(log_prob, -1).astype(jnp.int32)


def network(env: Any, hidden_sizes: Sequence[int], encoder: str = "flat") -> ActorCritic:
    """The network for an env's actions; `encoder` as in PPOConfig."""
    return NETWORKS[encoder](env.num_actions, tuple(hidden_sizes))
