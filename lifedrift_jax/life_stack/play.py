"""LifeStack played step by step: an object with an episode, for scripts, notebooks and agents."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lifedrift_jax import rng
from lifedrift_jax.life_stack import describe
from lifedrift_jax.life_stack.compile import compile_task
from lifedrift_jax.life_stack.env import LifeStack
from lifedrift_jax.life_stack.schema import Task
from lifedrift_jax.life_stack.types import Capacity, Params, State


class PlayStep(NamedTuple):
    """What `LifeStackEnv.step` returns; `info` has "outcome", "score", "view", "legal_actions"."""

    observation: str  # what the agent may know now; "view" has the same as a dict
    reward: float
    terminated: bool  # success, failure or the horizon
    truncated: bool  # always False
    info: dict[str, Any]


class _Episode(NamedTuple):
    content: str  # all that the task says
    params: Params
    key: jax.Array
    state: State


class LifeStackEnv:
    """One episode at a time of tasks of your choice; `LifeStack` is the env that compiles.

    What is played with a seed is episode 0 of that seed in a sweep, bit for bit. An error
    leaves all as it was. `env` is the functional env.
    """

    def __init__(self, capacity: Capacity | None = None) -> None:
        self.env = LifeStack(capacity or Capacity())
        self._episode: _Episode | None = None

    def reset(
        self, task: Task | str | None = None, seed: int = 0, difficulty: int | None = None
    ) -> str:
        """Start an episode.

        Args:
            task: a Task, or the name of a built-in one; None repeats the last task, or takes
                flight_crisis if there was none.
            seed: of all that is drawn, an integer in [0, 2**32).
            difficulty: of a built-in task given by its name, in [1, 5]; by default its own.

        Returns:
            The first observation, as text.

        Raises:
            ValueError: the task cannot be compiled, or another argument is not legal.
        """
        key = rng.episode_key(rng.root_key(seed), jnp.uint32(0))
        content, params = self._compiled(task, difficulty)
        _, state = self.env.reset(rng.reset_key(key), params)
        observation = describe.paragraph(state, params)
        self._episode = _Episode(content, params, key, state)
        return observation

    def step(self, action: Any) -> PlayStep:
        """Take an action, in any form that `describe.checked_action` knows.

        Raises:
            ValueError: the action is none, or not legal; lists what is.
            RuntimeError: there is no episode, or it has ended.
        """
        _, params, key, before = episode = self._playing()
        if self.env.is_terminal(before, params):
            raise RuntimeError("the episode has ended: start another with reset()")
        index = np.int32(describe.checked_action(action, before, params))
        step = self.env.step(rng.step_key(key, before.step), before, index, params)
        info = {
            "outcome": describe.outcome(before, index, step, params),
            "score": float(self.env.grade(step.state, params)),
            "view": describe.observation(step.state, params),
            "legal_actions": describe.legal_actions(step.state, params),
        }
        observation = describe.paragraph(step.state, params)
        self._episode = episode._replace(state=step.state)
        ended = bool(step.terminated), bool(step.truncated)
        return PlayStep(observation, float(step.reward), *ended, info)

    @property
    def state(self) -> State:
        """Where the episode is."""
        return self._playing().state

    @property
    def params(self) -> Params:
        """The task, compiled."""
        return self._playing().params

    @property
    def legal_actions(self) -> list[str]:
        """Names of the actions that are legal now; all once the episode has ended."""
        return describe.legal_actions(self.state, self.params)

    @property
    def score(self) -> float:
        """The grade so far, in [0, 1]; final once the episode has ended."""
        return float(self.env.grade(self.state, self.params))

    def _playing(self) -> _Episode:
        if self._episode is None:
            raise RuntimeError("there is no episode yet: start one with reset()")
        return self._episode

    def _compiled(self, task: Task | str | None, difficulty: int | None) -> tuple[str, Params]:
        """What a task says, and its params: those of the last one if it says the same."""
        last = self._episode
        if difficulty is not None and not isinstance(task, str):
            raise ValueError(f"difficulty is {difficulty!r}: it is for a task given by its name")
        if task is None and last is not None:
            return last.content, last.params
        if task is None or isinstance(task, str):
            from lifedrift_jax.life_stack.library import build

            name = "flight_crisis" if task is None else task
            task = build(name) if difficulty is None else build(name, difficulty)
        if last is not None and last.content == repr(task):
            return last.content, last.params
        return repr(task), compile_task(task, self.env.capacity)
