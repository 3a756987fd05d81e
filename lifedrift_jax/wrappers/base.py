"""The base of the wrappers: an `Env` that forwards everything to the env it holds."""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from lifedrift_jax.core import Env, Step
from lifedrift_jax.rng import root_key
from lifedrift_jax.spaces import Discrete, Space


@dataclass(frozen=True)
class Wrapper(Env[Any, Any, Any]):
    """An env around another. It forwards the contract of `core.Env`; override what changes.

    A wrapper that keeps numbers of its own adds them around the inner state and overrides
    `inner_state`. The order to build in is

        AutoReset(EpisodeStats(TimeLimit(env, limit)))

    Attributes:
        env: the env inside.
        outermost: class attribute, True = no other wrapper may go around this one.

    Raises:
        TypeError: `env` is not an `Env` (such as the pair that `make` returns).
        ValueError: `env` must stay outermost.
    """

    env: Env[Any, Any, Any]
    outermost: ClassVar[bool] = False

    def __post_init__(self) -> None:
        own = type(self).__name__
        if not isinstance(self.env, Env):
            raise TypeError(f"{own} got env={self.env!r}: it must be an Env")
        if isinstance(self.env, Wrapper) and self.env.outermost:
            inner = type(self.env).__name__
            raise ValueError(f"{own} around {inner}: build {inner} last, around all others")
        # Class attributes of the inner env become attributes of this object, so that they
        # are found before the empty defaults of `Env`.
        for name in ("observation_names", "action_names", "variable_names", "event_names"):
            object.__setattr__(self, name, getattr(self.env, name))
        object.__setattr__(self, "reward_range", self.env.reward_range)

    @property
    def auto_resets(self) -> bool:
        """True = a step that ends an episode returns the first state of the next."""
        return self.env.auto_resets

    def inner_state(self, state: Any) -> Any:
        """The inner env's state within this wrapper's; here they are the same."""
        return state

    def start(self, key: jax.Array, params: Any) -> Any:
        """See `Env.start`."""
        return self.env.start(key, params)

    def draw(self, key: jax.Array) -> Any:
        """See `Env.draw`."""
        return self.env.draw(key)

    @partial(jax.jit, static_argnames="self")
    def advance(self, state: Any, action: jax.Array, noise: Any, params: Any) -> Step:
        """See `Env.advance`; the one method that a wrapper of dynamics overrides."""
        return self.env.advance(state, action, noise, params)

    def transition(
        self, state: Any, action: jax.Array, noise: Any, params: Any
    ) -> tuple[Any, jax.Array]:
        """See `Env.transition`; what `advance` does, without its flags."""
        step = self.advance(state, action, noise, params)
        return step.state, step.reward

    def is_terminal(self, state: Any, params: Any) -> jax.Array:
        """() bool, a step from here changes nothing."""
        return self.env.is_terminal(self.inner_state(state), params)

    def observe(self, state: Any, params: Any) -> jax.Array:
        """See `Env.observe`."""
        return self.env.observe(self.inner_state(state), params)

    def return_bounds(self, num_steps: int) -> tuple[float, float]:
        """See `Env.return_bounds`."""
        return self.env.return_bounds(num_steps)

    def variables(self, state: Any, params: Any) -> tuple[jax.Array, ...]:
        """See `Env.variables`."""
        return self.env.variables(self.inner_state(state), params)

    def events(self, state: Any, params: Any) -> tuple[jax.Array, ...]:
        """See `Env.events`."""
        return self.env.events(self.inner_state(state), params)

    def score(self, state: Any, params: Any) -> jax.Array:
        """See `Env.score`."""
        return self.env.score(self.inner_state(state), params)

    def action_mask(self, state: Any, params: Any) -> jax.Array:
        """See `Env.action_mask`."""
        return self.env.action_mask(self.inner_state(state), params)

    def is_legal(self, state: Any, action: jax.Array, params: Any) -> jax.Array:
        """See `Env.is_legal`."""
        return self.env.is_legal(self.inner_state(state), action, params)

    @property
    def num_actions(self) -> int:
        """See `Env.num_actions`."""
        return self.env.num_actions

    def observation_space(self, params: Any) -> Space:
        """See `Env.observation_space`."""
        return self.env.observation_space(params)

    def action_space(self, params: Any) -> Discrete:
        """See `Env.action_space`."""
        return self.env.action_space(params)

    def empty_info(self, params: Any) -> dict[str, jax.Array]:
        """See `Env.empty_info`."""
        return self.env.empty_info(params)


def refuse_auto_reset(wrapper: Wrapper, reason: str) -> None:
    """Raise ValueError if the env inside `wrapper` resets by itself."""
    if getattr(wrapper.env, "auto_resets", False):  # no Env at all is refused elsewhere
        raise ValueError(
            f"{type(wrapper).__name__} around an env that resets by itself: {reason}; "
            "build AutoReset(EpisodeStats(TimeLimit(env, limit)))"
        )


def step_shapes(env: Env, params: Any) -> Step:
    """Shapes and dtypes of what `env.step` returns; computes nothing."""

    def one_step(params: Any) -> Step:
        key = root_key(0)
        _, state = env.reset(key, params)
        return env.step(key, state, jnp.int32(0), params)

    return jax.eval_shape(one_step, params)
