"""lifedrift_jax: a benchmark for planning under cognitive load, vectorised in JAX.

    env, params = lifedrift_jax.make("life_drift/drift_correction-v0")
    obs, state = env.reset(key, params)
    obs, state, reward, terminated, truncated, info = env.step(key, state, action, params)

Submodules load on first use: `lifedrift_jax.rollout`, `.sweep`, `.baselines`, `.life_drift`,
`.task_flow`, `.testing`, `.wrappers`.
"""

import importlib
from types import ModuleType

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

_SUBMODULES = (
    *("baselines", "life_drift", "life_stack", "rollout"),
    *("sweep", "task_flow", "testing", "wrappers"),
)


def __getattr__(name: str) -> ModuleType:
    if name in _SUBMODULES:
        return importlib.import_module(f"lifedrift_jax.{name}")
    raise AttributeError(f"module 'lifedrift_jax' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_SUBMODULES])
