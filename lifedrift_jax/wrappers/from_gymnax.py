"""gymnax's environments as ours: what plays or trains an `Env` plays or trains them.

    env, params = from_gymnax("CartPole-v1", return_range=(0.0, 500.0))

It takes any gymnax 1.0 environment with discrete actions whose observation is one array.
All is gymnax's own `reset_env` and `step_env`, and `step(key, ...)` is `step_env(key, ...)`.

Its time limit is an outside limit here: an episode that reaches it is `truncated`, not
`terminated`, so that learners value the state it was cut in. So of the promises that
`testing.check_env` checks, "a bare env never truncates" is not kept. Two more are gymnax's to
keep, and it does not in all its environments: in some, single calls and `vmap` differ in the
last bit (such as Acrobot), and some observe what is outside their space (such as MemoryChain).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lifedrift_jax.core import Env, Step, select
from lifedrift_jax.names import unknown
from lifedrift_jax.rng import IMPLEMENTATION
from lifedrift_jax.spaces import Box, Discrete, Space

try:
    with jax.enable_x64(False):  # some of its modules make arrays when they are imported
        import gymnax
        from gymnax.environments import environment
        from gymnax.environments import spaces as gymnax_spaces
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"{__name__} needs gymnax: pip install 'lifedrift_jax[gymnax]'"
    ) from error


class FromGymnaxState(NamedTuple):
    """State of `FromGymnax`.

    Attributes:
        env_state: gymnax's state, its leaves arrays of definite dtype.
        obs: what gymnax observed of it; float32, for a Discrete space int32.
        episode_return: () float32, sum of rewards so far.
        terminated: () bool, gymnax has ended the episode.
        truncated: () bool, gymnax's time limit has cut it, and it had not terminated.
    """

    env_state: Any
    obs: jax.Array
    episode_return: jax.Array
    terminated: jax.Array
    truncated: jax.Array


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FromGymnaxParams:
    """Params of `FromGymnax`.

    Attributes:
        task: gymnax's params, its leaves arrays of definite dtype.
        return_range: [2] float32, the returns of an episode that score 0 and 1.
    """

    task: Any
    return_range: jax.Array

    @property
    def max_steps(self) -> jax.Array:
        """() int32, gymnax's time limit, steps."""
        return jnp.asarray(self.task.max_steps_in_episode).astype(jnp.int32)

    def validate(self) -> None:
        """Raise ValueError unless `return_range` is finite and rises."""
        _checked_range("return_range", self.return_range)


@dataclass(frozen=True)
class FromGymnax(Env[FromGymnaxState, FromGymnaxParams, jax.Array]):
    """An environment of gymnax behind the contract of `core.Env`; make it with `from_gymnax`.

    An action out of range has no effect and pays 0: gymnax's state stays, but for its time.

    Attributes:
        env: the gymnax environment. Two of them are equal if they are one object.
        reward_range: bounds of one step's reward.

    Raises:
        TypeError: `env` is no gymnax environment.
        ValueError: its actions or observations are not of a kind this contract has.
    """

    env: Any
    reward_range: tuple[float, float] = field(kw_only=True)  # type: ignore[misc]

    variable_names: ClassVar[tuple[str, ...]] = ("episode_return",)
    event_names: ClassVar[tuple[str, ...]] = ("truncated",)

    def __post_init__(self) -> None:
        if not isinstance(self.env, environment.Environment):
            raise TypeError(f"env is {self.env!r}: it must be an Environment of gymnax, unwrapped")
        with _jax_defaults():
            actions = self.env.action_space(self.env.default_params)
            observations = self.env.observation_space(self.env.default_params)
        if not isinstance(actions, gymnax_spaces.Discrete):
            raise ValueError(f"{self.env.name} has actions in {actions}: they must be Discrete")
        if not isinstance(observations, gymnax_spaces.Box | gymnax_spaces.Discrete):
            raise ValueError(
                f"{self.env.name} has observations in {observations}: use a Box or a Discrete space"
            )
        entries = observations.shape[0] if len(observations.shape) == 1 else 0
        object.__setattr__(self, "action_names", _numbered(actions.n))
        object.__setattr__(self, "observation_names", _numbered(entries))

    def start(self, key: jax.Array, params: FromGymnaxParams) -> FromGymnaxState:
        """gymnax's `reset_env(key, params)`."""
        with _jax_defaults():
            obs, env_state = _typed(self.env.reset_env(key, params.task))
            obs = obs.astype(self._obs_dtype)
        return FromGymnaxState(env_state, obs, jnp.float32(0), jnp.bool_(False), jnp.bool_(False))

    def draw(self, key: jax.Array) -> jax.Array:
        """The key's words, [2] uint32: gymnax draws where it steps."""
        return jax.random.key_data(key)

    def transition(
        self, state: FromGymnaxState, action: jax.Array, noise: jax.Array, params: FromGymnaxParams
    ) -> tuple[FromGymnaxState, jax.Array]:
        """gymnax's `step_env`, with the key whose words are `noise`."""
        legal = self.is_legal(state, action, params)
        key = jax.random.wrap_key_data(noise, impl=IMPLEMENTATION)
        before = state.env_state
        with _jax_defaults():
            obs, moved, reward, terminated, _ = self.env.step_env(
                key, before, jnp.where(legal, action, 0), params.task
            )
            waited = before.replace(time=before.time + 1)
            after = _typed(select(legal, moved, waited))
            terminated = legal & terminated
            truncated = ~terminated & self.env.is_truncated(after, params.task)
            reward = jnp.where(legal, reward, 0).astype(jnp.float32)
            obs = jnp.where(legal, obs.astype(self._obs_dtype), state.obs)
        episode_return = state.episode_return + reward
        return FromGymnaxState(after, obs, episode_return, terminated, truncated), reward

    @partial(jax.jit, static_argnames="self")
    def advance(
        self, state: FromGymnaxState, action: jax.Array, noise: jax.Array, params: FromGymnaxParams
    ) -> Step:
        """See `Env.advance`; the two kinds of end apart."""
        step = super().advance(state, action, noise, params)
        return step._replace(terminated=step.state.terminated, truncated=step.state.truncated)

    def is_terminal(self, state: FromGymnaxState, params: FromGymnaxParams) -> jax.Array:
        """() bool, the episode has ended in either way."""
        return state.terminated | state.truncated

    def observe(self, state: FromGymnaxState, params: FromGymnaxParams) -> jax.Array:
        """gymnax's observation, float32; of a Discrete space () int32."""
        return state.obs

    def variables(self, state: FromGymnaxState, params: FromGymnaxParams) -> tuple[jax.Array, ...]:
        """() float32: the return so far."""
        return (state.episode_return,)

    def events(self, state: FromGymnaxState, params: FromGymnaxParams) -> tuple[jax.Array, ...]:
        """() bool: the time limit has cut the episode."""
        return (state.truncated,)

    def observation_space(self, params: FromGymnaxParams) -> Space:
        """gymnax's space, for a Box with the widest of its bounds."""
        with _jax_defaults():
            space = self.env.observation_space(params.task)
            if isinstance(space, gymnax_spaces.Discrete):
                return Discrete(space.n)
            return Box(_number(jnp.min(space.low)), _number(jnp.max(space.high)), (*space.shape,))

    def score(self, state: FromGymnaxState, params: FromGymnaxParams) -> jax.Array:
        """Place of the return in `params.return_range`, () float32 in [0, 1]."""
        low, high = params.return_range[0], params.return_range[1]
        # Times 1/n: a division by n may round differently alone and under vmap.
        return jnp.clip((state.episode_return - low) * (1 / (high - low)), 0, 1)

    @property
    def _obs_dtype(self) -> type:
        with _jax_defaults():
            space = self.env.observation_space(self.env.default_params)
        return np.int32 if isinstance(space, gymnax_spaces.Discrete) else np.float32


def from_gymnax(
    env: Any,
    params: Any = None,
    *,
    return_range: tuple[float, float],
    reward_range: tuple[float, float] | None = None,
) -> tuple[FromGymnax, FromGymnaxParams]:
    """An environment of gymnax and its params as `lifedrift_jax.make` gives ours.

    Args:
        env: an id of `gymnax.make`, or a gymnax environment. One id always gives the same
            env, which compiles once; an object is equal to itself alone, so keep it.
        params: gymnax's; by default the env's `default_params`.
        return_range: the returns of an episode that score 0 and 1, your own scale: the score
            is linear between them and clipped beyond.
        reward_range: bounds of one step's reward, of which gymnax says nothing. By default
            0 and the bounds of `return_range`, which holds where all rewards have one sign
            but is wide: a sweep's quantiles of the return are as fine as this range.

    Raises:
        TypeError: `env` is neither an id nor a gymnax environment.
        ValueError: no such id, actions that are not Discrete, observations of another kind
            than one array, or a range that is not two finite numbers, the lower one first.
    """
    low, high = _checked_range("return_range", return_range)
    if reward_range is None:
        reward_range = min(low, 0.0), max(high, 0.0)
    made = _made(env) if isinstance(env, str) else env
    adapted = FromGymnax(made, reward_range=_checked_range("reward_range", reward_range))
    with _jax_defaults():
        task = _typed(adapted.env.default_params if params is None else params)
    return adapted, FromGymnaxParams(task, jnp.array([low, high], jnp.float32))


@cache
def _made(env_id: str) -> Any:
    """The gymnax environment of an id, always the same object."""
    if env_id not in gymnax.registered_envs:
        raise unknown("gymnax environment", env_id, gymnax.registered_envs)
    # Its arrays outlive a trace that this may be called in.
    with jax.ensure_compile_time_eval(), _jax_defaults():
        return gymnax.make(env_id)[0]


@contextmanager
def _jax_defaults() -> Iterator[None]:
    """JAX as gymnax was written for, whatever the caller's settings.

    It relies on implicit promotion, and with 64 bits on it would draw other numbers.
    """
    with (
        jax.enable_x64(False),
        jax.numpy_dtype_promotion("standard"),
        jax.numpy_rank_promotion("allow"),
    ):
        yield


def _typed(tree: Any) -> Any:
    """Every leaf an array of definite dtype: gymnax mixes in Python numbers."""
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.asarray(x).dtype), tree)


def _numbered(count: int) -> tuple[str, ...]:
    return tuple(map(str, range(count)))


def _number(bound: jax.Array) -> Any:
    """A bound as a Python number, unless it depends on params that are traced."""
    return bound if isinstance(bound, jax.core.Tracer) else float(bound)


def _checked_range(name: str, bounds: Any) -> tuple[float, float]:
    """The two numbers of a range; ValueError unless they are finite in float32 and rise."""
    try:
        with np.errstate(over="ignore"):
            low, high = np.asarray(bounds, np.float32).tolist()
        rises = -np.inf < low < high < np.inf
    except (TypeError, ValueError):
        rises = False
    if not rises:
        raise ValueError(f"{name} is {bounds!r}: use two finite numbers, the lower one first")
    return low, high
