"""The contract every family follows: `Env`, `Step`, `Policy`, and the helpers they share.

A family writes pure rules on small pytrees; `Env` adapts them. The env object holds sizes
only (a frozen dataclass: equal envs share one compilation), `params` every tunable number,
`state` what changes within an episode, and neither holds a key.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from lifedrift_jax.spaces import Discrete, Space

State = TypeVar("State")
Params = TypeVar("Params")
Noise = TypeVar("Noise")
Tree = TypeVar("Tree")


class Step(NamedTuple):
    """What `Env.step` returns; unpacks as gymnax 1.0's six values.

    Attributes:
        obs: observation of the state after the step.
        state: the state after the step.
        reward: () float, 0 from a finished state.
        terminated: () bool, the task ended, by its own deadline too.
        truncated: () bool, an OUTSIDE limit cut the episode; always False in a bare env.
        info: the same keys, shapes and dtypes on every step.
    """

    obs: jax.Array
    state: Any
    reward: jax.Array
    terminated: jax.Array
    truncated: jax.Array
    info: dict[str, jax.Array]


class Policy(NamedTuple):
    """A policy: two pure functions around a carry of its own.

    Build policies with functions that return the same object for equal arguments (all in
    `baselines` do): a compiled program is kept per policy object.

    Attributes:
        name: as written in tables, on the command line and in plots.
        init: `(key, params) -> carry`, once an episode.
        act: `(key, obs, mask, carry) -> (action, carry)`; mask [A] bool, True = legal;
            action () int32.
    """

    name: str
    init: Callable[[jax.Array, Any], Any]
    act: Callable[[jax.Array, jax.Array, jax.Array, Any], tuple[jax.Array, Any]]


@dataclass(frozen=True)
class Env(Generic[State, Params, Noise]):
    """Base of all environments. Batch with `jax.vmap`, over keys, states or params.

    An environment of your own is a frozen dataclass of sizes that derives from this one and
    defines `start`, `draw`, `transition`, `is_terminal`, `observe`, `observation_space`,
    `score` and the names below; if not every action is always legal also `action_mask` and
    `is_legal`, and for plots and summaries `variables` and `events`. `reset`, `step`,
    `advance` and `grade` follow from these. Params and states are pytrees of typed arrays
    (registered dataclasses or NamedTuples); params have `max_steps`, the longest episode.
    `lifedrift_jax.testing.check_env` says what is missing.

    `step` never resets by itself (see `wrappers.AutoReset`). A step from a finished state
    changes nothing and pays 0. An out-of-range or illegal action inside compiled code has
    no effect of its own, pays 0, sets `info["invalid_action"]` and still counts a step.

    Class attributes:
        observation_names: names of the observation's entries; frozen once released.
        action_names: names of the actions, in index order.
        variable_names: the entries of `variables`, for plots and sweep summaries.
        event_names: the entries of `events`, yes-or-no facts about an episode.
        reward_range: bounds of one step's reward.
    """

    observation_names: ClassVar[tuple[str, ...]] = ()
    action_names: ClassVar[tuple[str, ...]] = ()
    variable_names: ClassVar[tuple[str, ...]] = ()
    event_names: ClassVar[tuple[str, ...]] = ()
    reward_range: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    # What a family writes.

    def start(self, key: jax.Array, params: Params) -> State:
        """First state of an episode. A family with a fixed start ignores `key`."""
        raise self._undefined("start(key, params)")

    def draw(self, key: jax.Array) -> Noise:
        """All randomness of one step, a function of `key` (consumed) and nothing else."""
        raise self._undefined("draw(key)")

    def transition(
        self, state: State, action: jax.Array, noise: Noise, params: Params
    ) -> tuple[State, jax.Array]:
        """Deterministic move from an unfinished state: (next state, reward)."""
        raise self._undefined("transition(state, action, noise, params)")

    def is_terminal(self, state: State, params: Params) -> jax.Array:
        """() bool, the task has ended."""
        raise self._undefined("is_terminal(state, params)")

    def observe(self, state: State, params: Params) -> jax.Array:
        """Observation of a state: float32, inside `observation_space(params)`."""
        raise self._undefined("observe(state, params)")

    def variables(self, state: State, params: Params) -> tuple[jax.Array, ...]:
        """Scalars worth plotting, named by `variable_names`."""
        return ()

    def events(self, state: State, params: Params) -> tuple[jax.Array, ...]:
        """() bools about the episode so far, named by `event_names`."""
        return ()

    def return_bounds(self, num_steps: int) -> tuple[float, float]:
        """Bounds of the return of so many steps, those of its histogram in a sweep."""
        low, high = self.reward_range
        return low * num_steps, high * num_steps

    def observation_space(self, params: Params) -> Space:
        """Space of observations."""
        raise self._undefined("observation_space(params)")

    def score(self, state: State, params: Params) -> jax.Array:
        """The grade's formula; users call `grade`."""
        raise self._undefined("score(state, params)")

    def _undefined(self, method: str) -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__} does not define {method}")

    # What users call.

    @partial(jax.jit, static_argnames="self")
    def reset(self, key: jax.Array, params: Params) -> tuple[jax.Array, State]:
        """First observation and state of an episode. `key` is consumed."""
        state = self.start(key, params)
        return self.observe(state, params), state

    @partial(jax.jit, static_argnames="self")
    def step(self, key: jax.Array, state: State, action: jax.Array, params: Params) -> Step:
        """One step of one episode. `key` is consumed; `action` is a () integer."""
        return self.advance(state, action, self.draw(key), params)

    @partial(jax.jit, static_argnames="self")
    def advance(self, state: State, action: jax.Array, noise: Noise, params: Params) -> Step:
        """`step` with given noise: recorded draws replay, planners choose their own."""
        action = integer_action(action)
        finished = self.is_terminal(state, params)
        moved, reward = self.transition(state, action, noise, params)
        next_state = select(finished, state, moved)
        return Step(
            obs=self.observe(next_state, params),
            state=next_state,
            reward=jnp.where(finished, jnp.zeros_like(reward), reward),
            terminated=self.is_terminal(next_state, params),
            truncated=jnp.bool_(False),
            info={"invalid_action": ~finished & ~self.is_legal(state, action, params)},
        )

    @partial(jax.jit, static_argnames="self")
    def grade(self, state: State, params: Params) -> jax.Array:
        """Score of the episode so far, () float in [0, 1]; final once the task has ended."""
        return self.score(state, params)

    @property
    def auto_resets(self) -> bool:
        """True if a step that ends an episode returns the first state of the next."""
        return False

    @property
    def num_actions(self) -> int:
        """Number of actions, A."""
        return len(self.action_names)

    def action_mask(self, state: State, params: Params) -> jax.Array:
        """[A] bool, True = legal; all True in a finished state."""
        return jnp.ones(self.num_actions, bool)

    def is_legal(self, state: State, action: jax.Array, params: Params) -> jax.Array:
        """() bool, the action is in range and its entry of the mask is True."""
        return (action >= 0) & (action < self.num_actions)

    def action_space(self, params: Params) -> Discrete:
        """Space of actions."""
        return Discrete(self.num_actions)

    def empty_info(self, params: Params) -> dict[str, jax.Array]:
        """`info` before the first step: step's keys, shapes and dtypes, all False or 0."""
        return {"invalid_action": jnp.bool_(False)}


def integer_action(action: jax.typing.ArrayLike) -> jax.Array:
    """`action` as () int32; raise TypeError for any other shape or a non-integer dtype."""
    action = jnp.asarray(action)
    if action.shape != () or not jnp.issubdtype(action.dtype, jnp.integer):
        raise TypeError(
            f"action has shape {action.shape} and dtype {action.dtype}: "
            "use one integer of shape () (batch with jax.vmap)"
        )
    if action.dtype.itemsize > 4:  # a cast would turn 2**32 + 1 into action 1
        limits = jnp.iinfo(jnp.int32)
        action = jnp.clip(action, limits.min, limits.max)
    return action.astype(jnp.int32)


def positive(name: str, value: int) -> int:
    """`value` as an int; raise ValueError unless it is a whole number of at least 1."""
    try:
        whole = int(value)
        legal = not isinstance(value, bool) and whole == value and whole >= 1
    except (TypeError, ValueError, OverflowError):  # a word, nothing, nan, inf
        legal = False
    if not legal:
        raise ValueError(f"{name} is {value!r}: it must be a whole number of at least 1")
    return whole


def select(condition: jax.Array, if_true: Tree, if_false: Tree) -> Tree:
    """`jnp.where` with one () bool over two pytrees of equal structure and dtypes."""
    return jax.tree.map(lambda x, y: jnp.where(condition, x, y), if_true, if_false)


def pick(column: jax.Array, index: jax.Array) -> jax.Array:
    """`column[index]` for a short column [n]; an index out of range gives the last entry.

    A chain of selects: on CPU it vectorises over a batch of indices, a gather does not.
    """
    value = column[-1]
    for row in range(column.shape[0] - 2, -1, -1):
        value = jnp.where(index == row, column[row], value)
    return value


def rounded(product: jax.Array) -> jax.Array:
    """A product, rounded to its dtype before anything is added to it.

    A compiler may turn `a * b + c` into one fused operation, and of `a * b + c * d` it may
    fuse either half, in one program unlike in another: the last bit then depends on what
    else is compiled. A clamp to all finite values changes nothing and stops that.
    """
    limits = jnp.finfo(product.dtype)
    return jnp.clip(product, limits.min, limits.max)


def fence(live: jax.Array, tree: Tree) -> Tree:
    """`tree`, which XLA on CPU is kept from computing again in each of its consumers.

    XLA's CPU backend fuses a shared producer into every consumer and drops
    `lax.optimization_barrier` before it does; a conditional is a boundary it keeps. This
    doubles the speed of a Life Drift sweep. On other backends it is the plain identity.

    Args:
        live: () bool, always True at run time but unknown to the compiler and the same for
            the whole batch, such as a comparison of a parameter, or `always()` where all of
            them may be batched. If it is batched, or a constant, the result is the same and
            only the speed is lost.
        tree: any pytree of arrays.
    """

    def fenced(tree: Tree) -> Tree:
        return jax.lax.cond(live, lambda x: x, lambda x: jax.tree.map(jnp.zeros_like, x), tree)

    return jax.lax.platform_dependent(tree, cpu=fenced, default=lambda x: x)


def always() -> jax.Array:
    """() bool, True at run time, which no compiler knows before: for `fence`."""
    return jax.lax.rng_uniform(jnp.float32(0), jnp.float32(1), ()) >= 0


def one_episode(state: Tree) -> Tree:
    """`state`, which has a `step`; raise ValueError if it is a batch of states."""
    shape = np.shape(state.step)  # type: ignore[attr-defined]
    if shape != ():
        raise ValueError(
            f"state is a batch of shape {shape}: take one episode of it, "
            "such as jax.tree.map(lambda x: x[0], state)"
        )
    return state


def horizon(params: Any) -> int:
    """The largest `max_steps` of concrete (perhaps stacked) params, as a Python int."""
    try:
        return int(np.max(params.max_steps))
    except jax.errors.JAXTypeError:
        raise ValueError("max_steps is traced here: pass num_steps=... as a Python int") from None
