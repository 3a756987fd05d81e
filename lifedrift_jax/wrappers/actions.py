"""Actions that come from outside compiled code."""

from typing import Any

import jax
import numpy as np

from lifedrift_jax.core import Env


def checked_action(env: Env, action: Any, mask: np.ndarray) -> int:
    """The index of a legal action.

    Args:
        env: whose action it is.
        action: an index, as an int or a NumPy or JAX integer of shape (), or a name of
            `env.action_names`.
        mask: [A] bool, True = legal.

    Raises:
        ValueError: anything else; the message lists the legal actions.
    """
    index = _index(env, action)
    if not (0 <= index < len(mask) and mask[index]):
        legal = ", ".join(f"{i} {env.action_names[i]}" for i in np.flatnonzero(mask))
        raise ValueError(f"action is {action!r}: use the index or the name of one of {legal}")
    return index


def _index(env: Env, action: Any) -> int:
    """The index that `action` stands for, -1 if none."""
    if isinstance(action, str):
        return env.action_names.index(action) if action in env.action_names else -1
    if isinstance(action, int | np.generic | np.ndarray | jax.Array):
        number = np.asarray(action)
        if number.shape == () and np.issubdtype(number.dtype, np.integer):
            return int(number)
    return -1
