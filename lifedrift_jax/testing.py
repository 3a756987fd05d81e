"""A conformance check for environments: are the promises of `core.Env` kept?

    check_env(*make("life_drift/energy_balance-v0"))

`check_env` plays two episodes by single compiled calls, then checks one promise after the
other on what it saw. `CHECKS` lists them; the first line of each docstring is the promise.
"""

import dataclasses
from collections.abc import Iterator
from copy import copy
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lifedrift_jax.core import Env, Step, horizon
from lifedrift_jax.rng import IMPLEMENTATION, episode_key, reset_key, root_key, step_key

UNBOUNDED_STEPS = 64  # steps of an episode where params have no max_steps
NUM_KEYS = 64  # keys whose draws are compared


class ConformanceError(AssertionError):
    """An environment breaks a promise of `core.Env`; the message says where, and what is right."""


class Seen(NamedTuple):
    """Steps played one compiled call at a time: numpy leaves with a leading axis [N].

    Attributes:
        key: [N, 2] uint32, data of the step's key.
        obs, state, mask, finished, grade: of the state BEFORE the step.
        action: [N] int32, from -1 to num_actions.
        step: what the step returned.
    """

    key: Any
    obs: Any
    state: Any
    mask: Any
    finished: Any
    grade: Any
    action: Any
    step: Any


@dataclasses.dataclass(frozen=True)
class Trial:
    """What is checked, and what was seen of it."""

    env: Env
    params: Any
    seed: int
    num_steps: int

    @cached_property
    def seen(self) -> Seen:
        """Two episodes: one of any actions, out-of-range ones too, one of legal actions."""
        return self.play()

    def play(self) -> Seen:
        """Play both episodes; the same call gives the same episodes."""
        rows = [*self._episode(0, legal_only=False), *self._episode(1, legal_only=True)]
        return jax.tree.map(lambda *x: np.stack(x), *rows)

    def _episode(self, index: int, legal_only: bool) -> Iterator[Seen]:
        choice, key = np.random.default_rng(self.seed), episode_key(root_key(self.seed), index)
        env, params = self.env, self.params
        mask_of, is_terminal = jax.jit(env.action_mask), jax.jit(env.is_terminal)
        obs, state = env.reset(reset_key(key), params)
        for t in range(self.num_steps):
            mask = np.asarray(mask_of(state, params))
            _require(mask.any(), f"action_mask is all False at step {t}: some action must be legal")
            legal = np.flatnonzero(mask) if legal_only else np.arange(-1, env.num_actions + 1)
            action = np.int32(choice.choice(legal))
            step = env.step(step_key(key, t), state, action, params)
            before = obs, state, mask, is_terminal(state, params), env.grade(state, params)
            row = Seen(jax.random.key_data(step_key(key, t)), *before, action, step)
            yield jax.tree.map(np.asarray, row)
            obs, state = step.obs, step.state

    @property
    def keys(self) -> jax.Array:
        """The keys of the steps seen, [N]."""
        return jax.random.wrap_key_data(self.seen.key, impl=IMPLEMENTATION)

    @cached_property
    def actions(self) -> np.ndarray:
        """[B] int32: all actions, then four out of range."""
        n = self.env.num_actions
        return np.array([*range(n), -(2**31), -1, n, 2**31 - 1], np.int32)

    @cached_property
    def tried(self) -> Step:
        """Each of `actions` from each state seen: leaves [N, B, ...]."""
        step = jax.vmap(jax.vmap(self.env.step, (None, None, 0, None)), (0, 0, None, None))
        steps = jax.jit(step)(self.keys, self.seen.state, self.actions, self.params)
        return jax.tree.map(np.asarray, steps)


def check_env(env: Env, params: Any, *, seed: int = 0, num_steps: int | None = None) -> None:
    """Check that a bare environment (no wrapper around it) keeps the promises of `core.Env`.

    Args:
        env, params: as `make` gives them: params of float32 and int32 leaves, not stacked.
        seed: of the keys and actions played, in [0, 2**32).
        num_steps: length of each of the two episodes; by default two steps beyond
            `params.max_steps`, or 64 where params have none. What should hold at the end of
            an episode is checked only where one gets there.

    Raises:
        ConformanceError: an AssertionError that names the field, the value and what is right.
        ValueError: seed or num_steps out of range.
    """
    if num_steps is None:
        num_steps = horizon(params) + 2 if hasattr(params, "max_steps") else UNBOUNDED_STEPS
    if num_steps < 1:
        raise ValueError(f"num_steps is {num_steps}: play at least 1 step")
    trial = Trial(env, params, seed, num_steps)
    for check in CHECKS:
        try:
            check(trial)
        except ConformanceError:
            raise
        except Exception as error:
            promise = str(check.__doc__).splitlines()[0]
            raise ConformanceError(f"{promise} But: {type(error).__name__}: {error}") from error


def check_params(trial: Trial) -> None:
    """All fields of params are array leaves of definite dtype: new values compile nothing."""
    for name, leaf in _leaves("params", trial.params).items():
        typed = hasattr(leaf, "dtype") and not getattr(leaf, "weak_type", False)
        _require(typed, f"{name} is {leaf!r}: use an array of definite dtype, as jnp.float32(...)")
    leaves = {id(x) for x in jax.tree.leaves(trial.params)}
    for name, value in _fields("params", trial.params):
        traced = all(id(x) in leaves for x in jax.tree.leaves(value))
        _require(traced, f"{name} is {value!r}, a static field: make it an array leaf")


def check_shapes(trial: Trial) -> None:
    """Reset and step run under jit, and their shapes and dtypes fit a loop's carry."""
    env, params, key = trial.env, trial.params, root_key(trial.seed)
    obs, state = jax.eval_shape(env.reset, key, params)
    info = jax.eval_shape(env.empty_info, params)
    _require("invalid_action" in info, "info has no 'invalid_action': keep empty_info's")
    noise = jax.eval_shape(env.draw, key)
    moved, _ = jax.eval_shape(env.transition, state, jnp.int32(0), noise, params)
    _require_kind("state", moved, state, "as reset gives it")
    first = jax.eval_shape(env.step, key, state, jnp.int32(0), params)
    second = jax.eval_shape(env.step, key, first.state, jnp.int32(0), params)
    for step in (first, second):
        _require_kind("obs", step.obs, obs, "as reset gives it")
        _require_kind("state", step.state, state, "as reset gives it")
        _require_kind("info", step.info, info, "as empty_info gives it")
    mask = jax.eval_shape(env.action_mask, state, params)
    grade = jax.eval_shape(env.grade, state, params)
    _require_kind("action_mask", mask, _struct(np.bool_, env.num_actions), "one bool an action")
    for name in ("terminated", "truncated"):
        _require_kind(name, getattr(second, name), _struct(np.bool_), "a scalar bool")
    for name, value in {"reward": second.reward, "grade": grade}.items():
        dtype = value.dtype if jnp.issubdtype(value.dtype, jnp.floating) else np.float32
        _require_kind(name, value, _struct(dtype), "a scalar float")


def check_dtypes(trial: Trial) -> None:
    """Floats of params and state are all of one dtype, and neither holds a key."""
    _, state = jax.eval_shape(trial.env.reset, root_key(trial.seed), trial.params)
    leaves = _leaves("params", trial.params) | _leaves("state", state)
    for name, leaf in leaves.items():
        is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        _require(not is_key, f"{name} is a random key: keys are arguments of reset and step only")
    floats = {n: x.dtype for n, x in leaves.items() if jnp.issubdtype(x.dtype, jnp.floating)}
    for name, dtype in floats.items():
        first, right = next(iter(floats.items()))
        _require(dtype == right, f"{name} is {dtype} and {first} is {right}: use one float dtype")


def check_one_trace(trial: Trial) -> None:
    """New keys, states, actions and params, and an equal env, cost no second trace."""
    traces = []

    @partial(jax.jit, static_argnums=0)
    def step(env, key, state, action, params):
        traces.append(env)
        return env.step(key, state, action, params)

    for env, row in ((trial.env, 0), (copy(trial.env), -1)):
        state = _take(trial.seen.state, row)
        params = jax.tree.map(copy, trial.params)
        step.trace(env, trial.keys[row], state, trial.seen.action[row], params)
    right = "equal envs must compare equal and have one hash (a frozen dataclass of sizes)"
    _require(len(traces) == 1, f"step was traced {len(traces)} times, not once: {right}")


def check_spaces(trial: Trial) -> None:
    """Observations lie in their space; the names and the action space have its lengths."""
    env, seen = trial.env, trial.seen
    space = env.observation_space(trial.params)
    for name, batch in {"the obs": seen.obs, "the obs of step": seen.step.obs}.items():
        for i in range(len(seen.action)):
            obs = _take(batch, i)
            _require(space.contains(obs), f"{name} is {obs!r}: it must lie in {space}")
    shape = getattr(space, "shape", None)
    if shape is not None and len(shape) == 1:
        _require_count("observation_names", env.observation_names, shape[0])
    first = _take(seen.state, 0)
    for names in ("variable", "event"):
        values = jax.eval_shape(getattr(env, f"{names}s"), first, trial.params)
        _require_count(f"{names}_names", getattr(env, f"{names}_names"), len(values))
    n = env.action_space(trial.params).n
    _require(n == env.num_actions, f"action_space has n = {n}: the mask has {env.num_actions}")


def check_numbers(trial: Trial) -> None:
    """All numbers are finite, rewards within `reward_range`, grades in [0, 1]."""
    seen = trial.seen
    for name, leaf in _leaves("", seen).items():
        if jnp.issubdtype(leaf.dtype, jnp.floating):
            bad = leaf[~np.isfinite(leaf)]
            _require(bad.size == 0, f"{name} is {bad[:1]}: numbers must be finite")
    low, high = trial.env.reward_range
    _require_within("reward", seen.step.reward, low, high, "reward_range")
    _require_within("grade", seen.grade, 0, 1, "the range of grades")


def check_end(trial: Trial) -> None:
    """Episodes start unfinished and end by `max_steps`; a bare env never truncates."""
    seen, steps = trial.seen, trial.num_steps
    finished, terminated = (x.reshape(2, steps) for x in (seen.finished, seen.step.terminated))
    _require(not finished[:, 0].any(), "is_terminal is True at the start: it must be False")
    _require(not seen.step.truncated.any(), "truncated is True: only an outside limit truncates")
    after = jax.vmap(trial.env.is_terminal, (0, None))(seen.step.state, trial.params)
    _require((seen.step.terminated == after).all(), "terminated differs from is_terminal(state)")
    if hasattr(trial.params, "max_steps") and (deadline := horizon(trial.params)) <= steps:
        ended = terminated[:, deadline - 1].all()
        _require(ended, f"terminated is False after max_steps = {deadline} steps: it must be True")


def check_absorbing(trial: Trial) -> None:
    """From a finished state nothing changes, reward is 0 and all actions are legal."""
    rows = trial.seen.finished
    steps, states = _take(trial.tried, rows), _take(trial.seen.state, rows)
    for b, action in enumerate(trial.actions):
        after = _take(steps.state, (slice(None), b))
        why = "a finished state must not change"
        _require_equal(f"state after the end and action {action}", after, states, why)
    paid = steps.reward[steps.reward != 0]
    _require(paid.size == 0, f"reward is {paid[:1]} after the end: it must be 0")
    _require(steps.terminated.all(), "terminated is False after the end: it must stay True")
    flagged = steps.info["invalid_action"][:, : trial.env.num_actions].any()
    right = "all actions are legal in a finished state"
    _require(trial.seen.mask[rows].all(), f"action_mask has a False after the end: {right}")
    _require(not flagged, f"invalid_action is True after the end: {right}")


def check_mask(trial: Trial) -> None:
    """Actions the mask forbids, and only those, are flagged, pay 0 and have no effect."""
    rows, mask = ~trial.seen.finished, trial.seen.mask
    steps = _take(trial.tried, rows)
    legal = np.pad(mask, ((0, 0), (0, len(trial.actions) - mask.shape[1])))[rows]  # [n, B]
    for b, action in enumerate(trial.actions):
        ok, flag, reward = legal[:, b], steps.info["invalid_action"][:, b], steps.reward[:, b]
        _require(not flag[ok].any(), f"invalid_action is True for legal action {action}")
        _require(flag[~ok].all(), f"invalid_action is False for illegal action {action}")
        paid = reward[~ok & (reward != 0)]
        _require(paid.size == 0, f"reward is {paid[:1]} for illegal action {action}: 0 is right")
        after, other = (_take(steps.state, (~ok, column)) for column in (b, -1))
        why = "no illegal action has an effect of its own"
        _require_equal(f"state after illegal action {action}", after, other, why)


def check_draw(trial: Trial) -> None:
    """`draw` depends on its key and on nothing else."""
    keys = jax.vmap(step_key, (None, 0))(root_key(trial.seed), jnp.arange(NUM_KEYS))
    # Two function objects, so that each is traced, and anything read in tracing shows.
    once, again = (jax.jit(jax.vmap(lambda k: trial.env.draw(k)))(keys) for _ in range(2))
    _require_equal("noise", again, once, "draw(key) must follow from the key alone")
    rows = [np.asarray(x).reshape(NUM_KEYS, -1) for x in jax.tree.leaves(once)]
    differ = not rows or any(len(np.unique(x, axis=0)) > 1 for x in rows)
    _require(differ, f"noise is the same for {NUM_KEYS} keys: draw(key) must use its key")


def check_vmap(trial: Trial) -> None:
    """Reset and step under vmap give the bits of single compiled calls."""
    env, seen, keys = trial.env, trial.seen, trial.keys
    why = "vmap must give the bits of single calls"
    resets = jax.tree.map(lambda *x: np.stack(x), *(env.reset(k, trial.params) for k in keys))
    repeated = jax.tree.map(lambda x: np.stack([x] * len(keys)), trial.params)
    for params, axis in ((trial.params, None), (repeated, 0)):
        steps = jax.jit(jax.vmap(env.step, (0, 0, 0, axis)))(keys, seen.state, seen.action, params)
        _require_equal("step", steps, seen.step, why)
        _require_equal("reset", jax.jit(jax.vmap(env.reset, (0, axis)))(keys, params), resets, why)


def check_advance(trial: Trial) -> None:
    """`step` is `advance` with the noise that `draw` makes of the step's key."""
    seen = trial.seen
    noise = jax.jit(jax.vmap(trial.env.draw))(trial.keys)
    advance = jax.jit(jax.vmap(trial.env.advance, (0, 0, 0, None)))
    got = advance(seen.state, seen.action, noise, trial.params)
    _require_equal("advance", got, seen.step, "step(key) must be advance(draw(key))")


def check_x64(trial: Trial) -> None:
    """Episodes are the same with x64 on and off."""
    env, seen, why = trial.env, trial.seen, "x64 on and off must give the same: name all dtypes"
    _, state = env.reset(trial.keys[0], trial.params)
    with jax.enable_x64(jnp.result_type(float) != np.float64):
        _, other = env.reset(trial.keys[0], trial.params)
        _require_equal("state", other, state, why)
        _require_equal("", trial.play(), seen, why)


CHECKS = (
    check_params,
    check_shapes,
    check_dtypes,
    check_numbers,
    check_spaces,
    check_one_trace,
    check_end,
    check_absorbing,
    check_mask,
    check_draw,
    check_vmap,
    check_advance,
    check_x64,
)


def _require(condition: Any, message: str) -> None:
    if not condition:
        raise ConformanceError(message)


def _require_count(name: str, names: tuple[str, ...], count: int) -> None:
    _require(len(names) == count, f"{name} has {len(names)} names: there are {count} entries")


def _require_within(name: str, values: np.ndarray, low: float, high: float, range_: str) -> None:
    outside = values[(values < low) | (values > high)]
    _require(outside.size == 0, f"{name} is {outside[:1]}: {range_} is [{low}, {high}]")


def _require_kind(name: str, got: Any, right: Any, why: str) -> None:
    """Same structure, shapes and dtypes, and no weak type on either side."""

    def kinds(tree: Any) -> dict[str, str]:
        items = _leaves(name, tree).items()
        return {n: f"{x.dtype}{list(x.shape)}{' weak' * x.weak_type}" for n, x in items}

    got, right = kinds(got), kinds(right)
    _require(got.keys() == right.keys(), f"{name} has leaves {[*got]}, not {[*right]}: {why}")
    for leaf, kind in got.items():
        _require(kind == right[leaf], f"{leaf} is {kind}: it must be {right[leaf]}, {why}")
        _require("weak" not in kind, f"{leaf} is {kind}: name its dtype, as jnp.float32(...)")


def _require_equal(name: str, got: Any, right: Any, why: str) -> None:
    """Same structure, shapes, dtypes and bits."""
    got, right = _leaves(name, got), _leaves(name, right)
    for leaf in right:
        x, y = np.asarray(got[leaf]), np.asarray(right[leaf])
        _require(x.dtype == y.dtype, f"{leaf} is {x.dtype} and {y.dtype}: {why}")
        _require(x.shape == y.shape, f"{leaf} has shapes {x.shape} and {y.shape}: {why}")
        differ = np.argwhere(x.view(f"u{x.itemsize}") != y.view(f"u{y.itemsize}"))
        if differ.size:
            at = tuple(differ[0])
            raise ConformanceError(f"{leaf} is {x[at]!r} and {y[at]!r}: {why}")


def _leaves(name: str, tree: Any) -> dict[str, Any]:
    """Dotted name -> leaf."""
    keystr = partial(jax.tree_util.keystr, simple=True, separator=".")
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {f"{name}.{keystr(path)}".strip("."): leaf for path, leaf in leaves}


def _fields(name: str, record: Any) -> Iterator[tuple[str, Any]]:
    """Dotted names and values of a dataclass's fields, those of nested ones included."""
    if not dataclasses.is_dataclass(record):
        yield name, record
        return
    for field in dataclasses.fields(record):
        yield from _fields(f"{name}.{field.name}", getattr(record, field.name))


def _take(tree: Any, index: Any) -> Any:
    return jax.tree.map(lambda x: x[index], tree)


def _struct(dtype: Any, *shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)
