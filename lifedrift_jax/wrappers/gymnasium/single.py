"""One env as a gymnasium environment."""

from typing import Any

import gymnasium
import jax.numpy as jnp
import numpy as np
from gymnasium.error import ResetNeeded

from lifedrift_jax.core import Env
from lifedrift_jax.rng import checked_seed, root_key
from lifedrift_jax.wrappers import episodes
from lifedrift_jax.wrappers.actions import checked_action
from lifedrift_jax.wrappers.gymnasium import convert


class GymnasiumEnv(gymnasium.Env[np.ndarray, Any]):
    """One of our envs as a gymnasium environment.

    Observations are fresh float32 copies, rewards floats, flags bools. Actions are indices
    (an int, or a NumPy or JAX integer of shape ()) or names of `env.action_names`.
    """

    metadata = {"render_modes": []}  # noqa: RUF012, declared so by gymnasium

    def __init__(self, env: Env, params: Any, render_mode: None = None) -> None:
        """Take an env and its params, such as those of `lifedrift_jax.make`.

        Raises:
            ValueError: the env resets by itself, or a render mode is asked for.
        """
        convert.check_arguments(env, params, render_mode)
        self.env, self.params = env, params
        self.observation_space = convert.to_space(env.observation_space(params))
        self._actions = convert.LegalDiscrete(env.action_space(params).n)
        self.action_space = self._actions
        self._seat: episodes.Seat | None = None

    @property
    def state(self) -> Any:
        """The env's state; None before the first reset."""
        return None if self._seat is None else self._seat.state

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode: (seed, 0) if a seed is given, else the next of the last seed.

        With no seed ever given, one is drawn from the operating system; info tells it.

        Args:
            seed: integer in [0, 2**32).
            options: none are known.

        Raises:
            ValueError: any other seed, or an option; the running episode stays as it is.
        """
        convert.refuse_options(options)
        if seed is None and self._seat is None:
            seed = convert.fresh_seed()
        if seed is not None:
            self._seed = checked_seed(seed)
            super().reset(seed=self._seed)
            root, episode = root_key(self._seed), jnp.uint32(0)
        else:
            assert self._seat is not None
            root, episode = self._seat.root, self._seat.episode + 1
        obs, self._seat, self._report = episodes.begin(self.env, root, episode, self.params)
        self._over, self._first = False, np.asarray(self._report.action_mask, np.int8)
        return np.array(obs), self._info()

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """One step.

        Raises:
            gymnasium.error.ResetNeeded: before the first reset, or after an episode's end.
            ValueError: an action that is not legal; the message lists those that are, and
                nothing changes.
        """
        if self._seat is None:
            raise ResetNeeded("call reset() before the first step")
        if self._over:
            raise ResetNeeded("the episode has ended: call reset() to begin the next")
        mask = np.asarray(self._report.action_mask)
        index = np.int32(checked_action(self.env, action, mask))
        step, self._report = episodes.play(self.env, self._seat, index, self.params)
        self._seat = step.state
        terminated, truncated = bool(step.terminated), bool(step.truncated)
        self._over = terminated or truncated
        return np.array(step.obs), float(step.reward), terminated, truncated, self._info()

    def _info(self) -> dict[str, Any]:
        info = convert.info_arrays(self._report, self._seed)
        # What is drawn after the end is played after a reset: there all is not legal any more.
        self._actions.legal = self._first if self._over else info["action_mask"]
        return {name: value if value.ndim else value.item() for name, value in info.items()}
