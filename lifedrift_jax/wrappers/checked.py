"""A debug switch: every step is checked, and what is wrong is named."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.experimental import checkify

from lifedrift_jax.core import Env, Step
from lifedrift_jax.spaces import Box
from lifedrift_jax.wrappers.actions import checked_action
from lifedrift_jax.wrappers.autoreset import BatchAutoReset
from lifedrift_jax.wrappers.base import Wrapper


@dataclass(frozen=True)
class Checked(Wrapper):
    """Checks each reset and step of one env, outside compiled code. Build it last.

    A wrong value raises ValueError that names it and what is legal: an action outside the
    mask; a state before or after the step with NaN or infinite entries, or with an
    observation outside `observation_space`; a reward outside `reward_range`. Values that
    pass are those of the env inside.
    """

    outermost: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if isinstance(self.env, BatchAutoReset):
            raise ValueError("Checked around BatchAutoReset: it checks one env, use AutoReset")
        super().__post_init__()

    # Jitted in `Env`, plain here: what raises an error cannot be compiled.

    def reset(  # type: ignore[override]
        self, key: jax.Array, params: Any
    ) -> tuple[jax.Array, Any]:
        """See `Env.reset`."""
        _refuse_tracers(key)
        return _value_or_error(*_reset(self.env, key, params))

    def step(  # type: ignore[override]
        self, key: jax.Array, state: Any, action: Any, params: Any
    ) -> Step:
        """See `Env.step`; `action` may also be a name of `action_names`."""
        return self._checked("step", state, action, key, params)

    def advance(  # type: ignore[override]
        self, state: Any, action: Any, noise: Any, params: Any
    ) -> Step:
        """See `Env.advance`; `action` may also be a name of `action_names`."""
        return self._checked("advance", state, action, noise, params)

    def _checked(self, method: str, state: Any, action: Any, random: Any, params: Any) -> Step:
        _refuse_tracers(state, action)
        mask = np.asarray(self.env.action_mask(state, params))
        index = jnp.int32(checked_action(self.env, action, mask))
        return _value_or_error(*_move(self.env, method, state, index, random, params))


def _refuse_tracers(*values: Any) -> None:
    if any(isinstance(x, Tracer) for x in jax.tree.leaves(values)):
        raise TypeError("Checked works outside jit, vmap and scan: use the env inside it there")


def _value_or_error(error: checkify.Error, value: Any) -> Any:
    if message := error.get():
        raise ValueError(message.partition(" (`check` failed)")[0])
    return value


@partial(jax.jit, static_argnames="env")
def _reset(env: Env, key: jax.Array, params: Any) -> tuple[checkify.Error, tuple[Any, Any]]:
    def reset() -> tuple[jax.Array, Any]:
        obs, state = env.reset(key, params)
        _check_state("the first state", env, state, obs, params)
        return obs, state

    return checkify.checkify(reset)()


@partial(jax.jit, static_argnames=("env", "method"))
def _move(
    env: Env, method: str, state: Any, action: jax.Array, random: Any, params: Any
) -> tuple[checkify.Error, Step]:
    def move() -> Step:
        _check_state("the state before the step", env, state, env.observe(state, params), params)
        if method == "step":
            step = env.step(random, state, action, params)
        else:
            step = env.advance(state, action, random, params)
        _check_state("the state after the step", env, step.state, step.obs, params)
        low, high = env.reward_range
        _check_range("reward", step.reward, low, high)
        return step

    return checkify.checkify(move)()


def _check_state(when: str, env: Env, state: Any, obs: jax.Array, params: Any) -> None:
    """Check that a state is finite and its observation in its space, entry by entry."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(state):
        if jnp.issubdtype(leaf.dtype, jnp.inexact):
            name = jax.tree_util.keystr(path).lstrip(".")
            text = f"{name} of {when} is {{x}}: it must be finite"
            checkify.check(jnp.all(jnp.isfinite(leaf)), text, x=leaf)
    space = env.observation_space(params)
    if (obs.shape, obs.dtype) != (space.shape, space.dtype):
        raise ValueError(f"observation of {when} is {obs.dtype}{obs.shape}: it must be in {space}")
    low, high = (space.low, space.high) if isinstance(space, Box) else (0, space.n - 1)
    names: Sequence[object] = env.observation_names or range(obs.size)
    for entry, value in zip(names, obs.ravel(), strict=True):
        _check_range(f"observation {entry} of {when}", value, low, high)


def _check_range(name: str, value: jax.Array, low: float, high: float) -> None:
    inside = (value >= low) & (value <= high)
    checkify.check(inside, f"{name} is {{x}}: it must be in [{low}, {high}]", x=value)
