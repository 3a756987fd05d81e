"""How much memory training takes, estimated from shapes before anything is compiled."""

import math
import os
from functools import partial
from typing import Any

import jax

from lifedrift_jax.core import Env
from lifedrift_jax.rng import is_key
from train import collect, losses, ppo
from train.config import Hyper, PPOConfig

SHARE = 0.5  # of a device's memory, the default budget
CPU_SHARE = 0.25  # of the machine's


def agent_bytes(env: Env, params: Any, config: PPOConfig) -> int:
    """About how many bytes one more agent takes in a compiled program.

    Counted are what is alive at once: two states (before and after), a trajectory and its
    samples, the activations of one gradient part or of one evaluation, and gradients.
    """
    shapes = jax.eval_shape(lambda: jax.random.key(0))
    hyper = Hyper().checked()
    state = jax.eval_shape(
        partial(ppo.init, env=env, params=params, config=config, hyper=hyper), shapes
    )
    _, trajectory, last = jax.eval_shape(
        partial(collect.collect, env=env, params=params, config=config, hyper=hyper), state
    )
    samples = jax.eval_shape(lambda x, y: collect.to_samples(x, y, None, hyper), trajectory, last)
    items = math.prod(trajectory.features.shape[2:-1])  # 1 unless the network sees rows
    width = 4 * 2 * sum(config.hidden_sizes) * items  # bytes of a sample's activations, both stacks
    rows = config.batch_size // config.minibatches
    if jax.default_backend() == "cpu":
        rows //= losses.equal_parts(rows)
    gradients = 3 * width * rows  # activations, and their gradients before and after tanh
    evaluation = 2 * config.eval_episodes * (width + tree_bytes(state.env_state) // config.num_envs)
    return sum(
        (
            2 * tree_bytes(state),
            3 * tree_bytes(state.params),
            tree_bytes(trajectory),
            tree_bytes(samples),
            max(gradients, evaluation),
        )
    )


def tree_bytes(tree: Any) -> int:
    """Bytes of the arrays of a pytree, or of what shapes stand for."""

    def leaf_bytes(x: Any) -> int:
        if is_key(x):
            x = jax.eval_shape(jax.random.key_data, x)
        return math.prod(x.shape) * x.dtype.itemsize

    return sum(map(leaf_bytes, jax.tree.leaves(tree)))


def default_budget() -> int:
    """Bytes to train in: half of a device's memory, a quarter of the machine's on CPU."""
    device = jax.local_devices()[0]
    if device.platform == "cpu":
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return int(CPU_SHARE * whole / jax.local_device_count())
    return int(SHARE * (device.memory_stats() or {}).get("bytes_limit", 8 * 2**30))


def gibibytes(count: float) -> str:
    """A number of bytes in words."""
    return f"{count / 2**30:.2f} GiB" if count >= 2**30 else f"{count / 2**20:.1f} MiB"
