"""Actions that come from outside compiled code."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from lifedrift_jax.core import Env
from lifedrift_jax.names import index_of


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
    index = index_of(action, env.action_names)
    if not (0 <= index < len(mask) and mask[index]):
        legal = ", ".join(f"{i} {env.action_names[i]}" for i in np.flatnonzero(mask))
        raise ValueError(f"action is {action!r}: use the index or the name of one of {legal}")
    return index


def checked_actions(env: Env, actions: Any, mask: np.ndarray, acting: np.ndarray) -> np.ndarray:
    """The indices of a batch of legal actions, [B] int32.

    Args:
        env: whose actions they are.
        actions: [B] integers, or a sequence of what `checked_action` takes.
        mask: [B, A] bool, True = legal.
        acting: [B] bool; where False the action is not looked at, and 0 is returned.

    Raises:
        ValueError: another length, or an action that is not legal; the message names the
            entry and lists the legal actions.
    """
    is_array = isinstance(actions, np.ndarray | jax.Array)
    sized = actions.ndim > 0 if is_array else isinstance(actions, Sequence)
    if not sized or len(actions) != len(mask):
        raise ValueError(f"actions is {actions!r}: give one for each of {len(mask)} envs")
    checked = np.zeros(len(mask), np.int32)
    if is_array and actions.ndim == 1 and np.issubdtype(actions.dtype, np.integer):
        numbers = np.asarray(actions)[acting]
        in_range = (numbers >= 0) & (numbers < mask.shape[1])
        if in_range.all() and mask[acting, numbers].all():
            checked[acting] = numbers
            return checked
    for i in np.flatnonzero(acting):
        try:
            checked[i] = checked_action(env, actions[i], mask[i])
        except ValueError as error:
            raise ValueError(f"env {i}: {error}") from None
    return checked
