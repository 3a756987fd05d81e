"""Our envs as gymnax environments: they reset by themselves and carry default params.

    env = GymnaxEnv(*lifedrift_jax.make("life_drift/drift_correction-v0"))

`GymnaxEnv.step` returns gymnax 1.0's six values; `GymnaxLegacyEnv.step` the five that
purejaxrl and rejax unpack. Both give the values of `AutoReset`, bit for bit.
"""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from lifedrift_jax import spaces
from lifedrift_jax.core import Env
from lifedrift_jax.registry import override
from lifedrift_jax.wrappers.autoreset import AutoReset

try:
    from gymnax.environments import spaces as gymnax_spaces
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"{__name__} needs gymnax: pip install 'lifedrift_jax[gymnax]'"
    ) from error


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class GymnaxParams:
    """Params with the attributes that gymnax's users read.

    Attributes:
        task: params of the env, such as those of `lifedrift_jax.make`.
    """

    task: Any

    @property
    def max_steps_in_episode(self) -> jax.Array:
        """() int32, the task's deadline, steps."""
        return self.task.max_steps

    def replace(self, **overrides: Any) -> "GymnaxParams":
        """Params with fields of `task` replaced, checked as in `lifedrift_jax.make`."""
        return GymnaxParams(override(self.task, **overrides))


class GymnaxEnv:
    """An env with the interface of a gymnax 1.0 environment.

    Args:
        env: an env that does not reset by itself, such as `EpisodeStats(env)`.
        params: its default params.
    """

    def __init__(self, env: Env, params: Any) -> None:
        self.env = AutoReset(env)
        self.default_params = GymnaxParams(params)

    @property
    def name(self) -> str:
        """Name of the env inside."""
        return type(self.env.env).__name__

    @property
    def num_actions(self) -> int:
        """Number of actions, A."""
        return self.env.num_actions

    def action_space(self, params: GymnaxParams | None = None) -> gymnax_spaces.Discrete:
        """gymnax's space of actions."""
        return gymnax_spaces.Discrete(self.env.action_space(self._task(params)).n)

    def observation_space(self, params: GymnaxParams | None = None) -> gymnax_spaces.Space:
        """gymnax's space of observations."""
        space = self.env.observation_space(self._task(params))
        if isinstance(space, spaces.Discrete):
            return gymnax_spaces.Discrete(space.n)
        return gymnax_spaces.Box(space.low, space.high, space.shape, np.dtype(space.dtype))

    def reset(self, key: jax.Array, params: GymnaxParams | None = None) -> tuple[jax.Array, Any]:
        """First observation and state; `key` is consumed."""
        return self.env.reset(key, self._task(params))

    def step(
        self, key: jax.Array, state: Any, action: jax.Array, params: GymnaxParams | None = None
    ) -> tuple[jax.Array, Any, jax.Array, jax.Array, jax.Array, dict[str, jax.Array]]:
        """obs, state, reward, terminated, truncated, info.

        After an episode's end obs and state are the next one's first, the rest the old
        one's last; `info["final_observation"]` is the true last observation. info repeats
        `terminated` and `truncated`, as gymnax's does.
        """
        step = self.env.step(key, state, action, self._task(params))
        info = {**step.info, "terminated": step.terminated, "truncated": step.truncated}
        return step.obs, step.state, step.reward, step.terminated, step.truncated, info

    def _task(self, params: GymnaxParams | None) -> Any:
        return (self.default_params if params is None else params).task


class GymnaxLegacyEnv(GymnaxEnv):
    """An env with the five-value step of gymnax before 1.0."""

    def step(  # type: ignore[override]
        self, key: jax.Array, state: Any, action: jax.Array, params: GymnaxParams | None = None
    ) -> tuple[jax.Array, Any, jax.Array, jax.Array, dict[str, jax.Array]]:
        """obs, state, reward, done, info; which kind of end it was is in info."""
        obs, state, reward, terminated, truncated, info = super().step(key, state, action, params)
        return obs, state, reward, terminated | truncated, info
