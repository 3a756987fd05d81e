"""Cut episodes short from outside the task."""

import operator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from lifedrift_jax.core import Step, select
from lifedrift_jax.wrappers.base import Wrapper, refuse_auto_reset


class TimeLimitState(NamedTuple):
    """State of `TimeLimit`.

    Attributes:
        env_state: the inner env's state.
        time: () int32, steps taken so far.
    """

    env_state: Any
    time: jax.Array


@dataclass(frozen=True)
class TimeLimit(Wrapper):
    """Ends an episode after `limit` steps, as an outside limit: `truncated` alone is set.

    If the task ends in that very step, `terminated` wins and `truncated` stays False. The
    task's own deadline is no outside limit and remains `terminated`. A cut episode is
    finished: further steps keep its state and flags, pay 0 and give `empty_info`.

    Attributes:
        limit: steps, in [1, 2**31).

    Raises:
        ValueError: `limit` is no integer in [1, 2**31), or the env inside resets by itself,
            so that steps of several episodes would be counted as one.
    """

    limit: int

    def __post_init__(self) -> None:
        refuse_auto_reset(self, "it would count the steps of several episodes as one")
        if (
            isinstance(self.limit, bool)
            or not hasattr(self.limit, "__index__")
            or not (0 < self.limit < 2**31)
        ):
            raise ValueError(f"limit is {self.limit!r}: it must be an integer in [1, 2**31)")
        object.__setattr__(self, "limit", operator.index(self.limit))
        super().__post_init__()

    def inner_state(self, state: TimeLimitState) -> Any:
        """The inner env's state."""
        return state.env_state

    def start(self, key: jax.Array, params: Any) -> TimeLimitState:
        """The inner env's first state, at time 0."""
        return TimeLimitState(self.env.start(key, params), jnp.int32(0))

    def is_terminal(self, state: TimeLimitState, params: Any) -> jax.Array:
        """() bool, the task has ended or the limit is reached."""
        return self.env.is_terminal(state.env_state, params) | (state.time >= self.limit)

    @partial(jax.jit, static_argnames="self")
    def advance(self, state: TimeLimitState, action: jax.Array, noise: Any, params: Any) -> Step:
        """The inner env's step, unless this limit has cut the episode already."""
        before = state.env_state
        step = self.env.advance(before, action, noise, params)
        ended = self.env.is_terminal(before, params)
        cut = ~ended & (state.time >= self.limit)
        kept = Step(
            self.env.observe(before, params),
            before,
            jnp.zeros_like(step.reward),
            jnp.bool_(False),
            jnp.bool_(True),
            self.env.empty_info(params),
        )
        step = select(cut, kept, step)
        time = state.time + (~ended & ~cut).astype(jnp.int32)
        return step._replace(
            state=TimeLimitState(step.state, time),
            truncated=~step.terminated & (step.truncated | (time >= self.limit)),
        )
