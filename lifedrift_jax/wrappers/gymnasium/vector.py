"""Many envs as one gymnasium vector environment."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from lifedrift_jax.core import Env
from lifedrift_jax.rng import checked_seed, root_key
from lifedrift_jax.wrappers import episodes
from lifedrift_jax.wrappers.actions import checked_actions
from lifedrift_jax.wrappers.gymnasium import convert

MODES = (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP)


class GymnasiumVectorEnv(VectorEnv):
    """`num_envs` of our envs in one compiled program.

    An int seed s gives env i the episodes (s, i), (s, i + num_envs), ...; a list of seeds
    gives it (seeds[i], 0), (seeds[i], 1), ... What follows an episode's end depends on
    `metadata["autoreset_mode"]`:

    * NEXT_STEP: the next call of `step` ignores that env's action, pays 0 and returns the
      first observation of the next episode; `info["reset_step"]` is True there: leave the
      step out of training;
    * SAME_STEP: `step` returns the next episode's first observation with the old one's
      last reward and flags, and `info["final_obs"]`, `info["final_info"]` with the masks
      `_final_obs`, `_final_info`; `reset_step` is always False.

    Entries of info have a leading axis [num_envs] and, as in gymnasium, a mask `_name`.
    """

    def __init__(
        self,
        env: Env,
        params: Any,
        num_envs: int = 1,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        render_mode: None = None,
    ) -> None:
        """Take an env, its params (shared), how many, and what follows an episode's end.

        Raises:
            ValueError: the env resets by itself, num_envs is below 1, the mode is none of
                the two (or "NextStep", "SameStep"), or a render mode is asked for.
        """
        convert.check_arguments(env, params, render_mode)
        if num_envs < 1:
            raise ValueError(f"num_envs is {num_envs}: it must be at least 1")
        mode = next((m for m in MODES if autoreset_mode in (m, m.value)), None)
        if mode is None:
            legal = " or ".join(repr(m.value) for m in MODES)
            raise ValueError(f"autoreset_mode is {autoreset_mode!r}: use {legal}")
        self.env, self.params, self.num_envs = env, params, num_envs
        self.metadata = {"render_modes": [], "autoreset_mode": mode}
        self.single_observation_space = convert.to_space(env.observation_space(params))
        self.single_action_space = convert.to_space(env.action_space(params))
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._same_step = mode is AutoresetMode.SAME_STEP
        self._seat: episodes.Seat | None = None

    @property
    def state(self) -> Any:
        """The envs' states, leaves [num_envs, ...]; None before the first reset."""
        return None if self._seat is None else self._seat.state

    def reset(
        self,
        *,
        seed: int | Sequence[int] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode in every env; without a seed, the next of each.

        With no seed ever given, one is drawn from the operating system; info tells it.

        Args:
            seed: an integer in [0, 2**32), or one for each env.
            options: none are known.

        Raises:
            ValueError: any other seed, a list of another length than num_envs, or an
                option; the running episodes stay as they are.
        """
        convert.refuse_options(options)
        if seed is None and self._seat is None:
            seed = convert.fresh_seed()
        if seed is not None:
            root, episode = self._seed_all(seed)
        else:
            assert self._seat is not None
            root, episode = self._seat.root, self._seat.episode + self._stride
        obs, self._seat, self._report = episodes.begin_batch(self.env, root, episode, self.params)
        self._waiting = np.zeros(self.num_envs, bool)
        return np.array(obs), self._info(self._waiting)

    def step(
        self, actions: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """One step of every env.

        Args:
            actions: [num_envs], each as for `GymnasiumEnv.step`; those of envs that begin
                an episode in this step are not looked at.

        Raises:
            gymnasium.error.ResetNeeded: before the first reset.
            ValueError: an action that is not legal; the message names its env and lists
                those that are, and nothing changes.
        """
        if self._seat is None:
            raise ResetNeeded("call reset() before the first step")
        waiting, mask = self._waiting, np.asarray(self._report.action_mask)
        checked = checked_actions(self.env, actions, mask, ~waiting)
        moved = episodes.play_batch(
            self.env,
            self._seat,
            waiting,
            checked,
            self._stride,
            self.params,
            same_step=self._same_step,
        )
        self._seat, self._report = moved.seat, moved.report
        terminated = np.asarray(moved.last.terminated) & ~waiting
        truncated = np.asarray(moved.last.truncated) & ~waiting
        done = terminated | truncated
        info = self._info(waiting)
        if self._same_step and done.any():
            info |= self._final(moved, done)
        self._waiting = np.zeros_like(done) if self._same_step else done.copy()
        return np.array(moved.obs), np.array(moved.last.reward), terminated, truncated, info

    def _seed_all(self, seed: int | Sequence[int]) -> tuple[jax.Array, jax.Array]:
        """Note the seeds; the roots and first indices, [num_envs] each."""
        if np.ndim(seed):
            seeds, stride = [checked_seed(s) for s in seed], 1  # type: ignore[union-attr]
            first = jnp.zeros(self.num_envs, jnp.uint32)
            if len(seeds) != self.num_envs:
                raise ValueError(
                    f"seed has {len(seeds)} entries: it must have num_envs = {self.num_envs}"
                )
        else:
            seeds, stride = [checked_seed(seed)], self.num_envs  # type: ignore[arg-type]
            first = jnp.arange(self.num_envs, dtype=jnp.uint32)
        super().reset(seed=seeds[0])
        self._seeds = np.broadcast_to(np.array(seeds, np.int64), self.num_envs)
        self._stride = np.uint32(stride)
        roots = jnp.stack([root_key(s) for s in seeds])
        return jnp.broadcast_to(roots, (self.num_envs,)), first

    def _info(self, reset_step: np.ndarray) -> dict[str, Any]:
        info = convert.info_arrays(self._report, self._seeds) | {"reset_step": reset_step.copy()}
        return _masked(info, np.ones(self.num_envs, bool))

    def _final(self, moved: episodes.BatchStep, done: np.ndarray) -> dict[str, Any]:
        """`final_obs` and `final_info` of the envs that are done, with their masks."""
        final_obs, last_obs = np.full(self.num_envs, None, dtype=object), np.array(moved.last.obs)
        for i in np.flatnonzero(done):
            final_obs[i] = last_obs[i]
        final_info = _masked(convert.info_arrays(moved.last_report, self._seeds), done)
        return {
            "final_obs": final_obs,
            "_final_obs": done.copy(),
            "final_info": final_info,
            "_final_info": done.copy(),
        }


def _masked(info: dict[str, np.ndarray], mask: np.ndarray) -> dict[str, np.ndarray]:
    """`info` as vector envs give it: each entry 0 where `mask` is False, and with a mask."""
    masked: dict[str, np.ndarray] = {}
    for name, value in info.items():
        value[~mask] = 0
        masked |= {name: value, f"_{name}": mask.copy()}
    return masked
