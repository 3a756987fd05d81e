"""What the single and the vector environment share."""

import secrets
from typing import Any

import gymnasium
import numpy as np

from lifedrift_jax import spaces
from lifedrift_jax.core import Env
from lifedrift_jax.rng import SEED_LIMIT
from lifedrift_jax.wrappers.checked import Checked
from lifedrift_jax.wrappers.episodes import Report


class LegalDiscrete(gymnasium.spaces.Discrete):
    """The actions, of which `sample` draws a legal one unless it is told otherwise.

    Attributes:
        legal: [A] int8, 1 = legal in the env's state, after an episode's end in its first
            state; None before the first reset.
    """

    legal: np.ndarray | None = None

    def sample(self, mask: np.ndarray | None = None, probability: np.ndarray | None = None) -> Any:
        """One action, uniform over `mask` ([A] int8), or over the legal ones."""
        if mask is None and probability is None:
            mask = self.legal
        return super().sample(mask, probability)


def check_arguments(env: Env, params: Any, render_mode: None) -> None:
    """Raise ValueError for an env that resets by itself or works outside jit only, for
    stacked params, and for a render mode.
    """
    if env.auto_resets:
        raise ValueError(f"{type(env).__name__} resets by itself: pass the env inside it")
    if isinstance(env, Checked):
        raise ValueError("Checked works outside jit only: pass the env inside it")
    if np.ndim(params.max_steps):
        raise ValueError(
            f"params are stacked, max_steps has shape {np.shape(params.max_steps)}: pass one task's"
        )
    if render_mode is not None:
        raise ValueError(f"render_mode is {render_mode!r}: only None is known")


def refuse_options(options: dict[str, Any] | None) -> None:
    """Raise ValueError if `reset` is given any option."""
    if options:
        raise ValueError(f"options has {', '.join(map(repr, options))}: no option is known")


def fresh_seed() -> int:
    """A seed from the operating system."""
    return secrets.randbelow(SEED_LIMIT)


def to_space(space: spaces.Space) -> gymnasium.Space:
    """Our space as gymnasium's."""
    if isinstance(space, spaces.Discrete):
        return gymnasium.spaces.Discrete(space.n)
    return gymnasium.spaces.Box(space.low, space.high, space.shape, space.dtype)


def info_arrays(report: Report, seed: Any) -> dict[str, np.ndarray]:
    """The info of one env or of a batch, as fresh arrays; `seed` is () or [B] int64."""
    info = {
        **report.info,
        "seed": seed,
        "episode_index": report.episode,
        "step": report.time,
        "score": report.score,
        "action_mask": np.asarray(report.action_mask, np.int8),
    }
    return {name: np.array(value) for name, value in info.items()}
