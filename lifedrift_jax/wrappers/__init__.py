"""Wrappers; each knows the contract of `core.Env` and no family.

The adapters to other libraries are modules of their own, imported on use:
`lifedrift_jax.wrappers.gymnasium`, `lifedrift_jax.wrappers.gymnax`, and, for gymnax's
environments in our contract, `lifedrift_jax.wrappers.from_gymnax`.
"""

from lifedrift_jax.wrappers.autoreset import AutoReset, BatchAutoReset
from lifedrift_jax.wrappers.base import Wrapper
from lifedrift_jax.wrappers.checked import Checked
from lifedrift_jax.wrappers.episode_stats import EpisodeStats, EpisodeStatsState
from lifedrift_jax.wrappers.time_limit import TimeLimit, TimeLimitState

__all__ = [
    "AutoReset",
    "BatchAutoReset",
    "Checked",
    "EpisodeStats",
    "EpisodeStatsState",
    "TimeLimit",
    "TimeLimitState",
    "Wrapper",
]
