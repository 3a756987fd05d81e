"""lifedrift_jax: a benchmark for planning under cognitive load, vectorised in JAX."""

from lifedrift_jax.core import Env, Policy, Step
from lifedrift_jax.registry import make, register, registered
from lifedrift_jax.rng import episode_key, policy_key, reset_key, root_key, step_key

__version__ = "0.1.0"
__all__ = [
    "Env",
    "Policy",
    "Step",
    "episode_key",
    "make",
    "policy_key",
    "register",
    "registered",
    "reset_key",
    "root_key",
    "step_key",
]
