"""check_env passes correct environments and finds one planted fault after another.

`Walk` is a correct toy: a walker on [0, 1] steps left, right or rests until it has no steps
left; at the left wall it may not step left. Each fault is a small subclass.
"""

import random
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import pytest
from jax.custom_batching import custom_vmap

from lifedrift_jax import make, registered
from lifedrift_jax.core import Env
from lifedrift_jax.rng import root_key, uniform_pair
from lifedrift_jax.spaces import Box, Discrete
from lifedrift_jax.testing import ConformanceError, check_env


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Params:
    max_steps: jax.Array
    stride: jax.Array


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    position: jax.Array
    step: jax.Array


class Noise(NamedTuple):
    slip: jax.Array


PARAMS = Params(jnp.int32(6), jnp.float32(0.25))


@dataclass(frozen=True)
class Walk(Env[State, Params, Noise]):
    observation_names: ClassVar = ("position",)
    action_names: ClassVar = ("left", "right", "rest")
    variable_names: ClassVar = ("position",)
    event_names: ClassVar = ("at_wall",)

    def start(self, key, params):
        return State(uniform_pair(key, 0)[0], jnp.zeros_like(params.max_steps))

    def draw(self, key):
        return Noise(uniform_pair(key, 0)[0])

    def transition(self, state, action, noise, params):
        way = jnp.where(action == 1, 1, jnp.where(action == 0, -1, 0)).astype(jnp.float32)
        legal = self.is_legal(state, action, params)
        moved = jnp.clip(state.position + way * params.stride * noise.slip, 0, 1)
        position = jnp.where(legal, moved, state.position)
        after = replace(state, position=position, step=state.step + 1)
        return after, jnp.where(legal, position - state.position + jnp.float32(0.01), 0)

    def is_terminal(self, state, params):
        return state.step >= params.max_steps

    def observe(self, state, params):
        return state.position[None]

    def observation_space(self, params):
        return Box(0.0, 1.0, (1,))

    def action_mask(self, state, params):
        may_go_left = (state.position > 0) | self.is_terminal(state, params)
        return jnp.stack([may_go_left, jnp.bool_(True), jnp.bool_(True)])

    def is_legal(self, state, action, params):
        in_range = (action >= 0) & (action < self.num_actions)
        return in_range & ((action != 0) | (state.position > 0))

    def variables(self, state, params):
        return (state.position,)

    def events(self, state, params):
        return (state.position <= 0,)

    def score(self, state, params):
        return state.position


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class EndlessParams:
    stride: jax.Array


class Endless(Walk):
    def start(self, key, params):
        return State(uniform_pair(key, 0)[0], jnp.int32(0))

    def is_terminal(self, state, params):
        return jnp.bool_(False)


def test_the_correct_toy_passes():
    check_env(Walk(), PARAMS)


def test_the_correct_toy_meets_its_wall():
    """Else the mask of the toy would never forbid anything."""
    _, state = Walk().reset(root_key(0), PARAMS)
    state = replace(state, position=jnp.float32(0))
    assert Walk().action_mask(state, PARAMS).tolist() == [False, True, True]
    step = Walk().step(root_key(1), state, jnp.int32(0), PARAMS)
    assert step.info["invalid_action"]
    assert step.reward == 0


def test_the_correct_toy_passes_where_x64_is_on():
    with jax.enable_x64(True):
        check_env(Walk(), PARAMS)


def test_a_correct_env_without_a_deadline_passes():
    check_env(Endless(), EndlessParams(jnp.float32(0.25)), num_steps=5)


def test_fewer_steps_than_the_deadline_may_be_played():
    check_env(Walk(), PARAMS, seed=1, num_steps=3)


def test_no_steps_at_all_are_refused():
    with pytest.raises(ValueError, match="num_steps is 0: play at least 1"):
        check_env(Walk(), PARAMS, num_steps=0)


# The tasks of a family are params of one env, so that by default the last stands for all: a
# check takes long.
@pytest.mark.slow
@pytest.mark.parametrize("family", sorted({i.partition("/")[0] for i in registered()}))
def test_every_registered_id_passes(family, full_size):
    ids = [i for i in registered() if i.startswith(f"{family}/")]
    for env_id in ids if full_size else ids[-1:]:
        check_env(*make(env_id))


# The faults. Each entry: (name, env, params, what the message must say).


class WeakStart(Walk):
    def start(self, key, params):
        return State(uniform_pair(key, 0)[0], 0)


class GrowingCounter(Walk):
    def transition(self, state, action, noise, params):
        after, reward = super().transition(state, action, noise, params)
        return replace(after, step=after.step.astype(jnp.float32)), reward


class MixedFloats(Walk):
    def start(self, key, params):
        return replace(super().start(key, params), position=jnp.float16(0.5))

    def transition(self, state, action, noise, params):
        wide = replace(state, position=state.position.astype(jnp.float32))
        after, reward = super().transition(wide, action, noise, params)
        return replace(after, position=after.position.astype(jnp.float16)), reward

    def observe(self, state, params):
        return state.position.astype(jnp.float32)[None]


class VectorReward(Walk):
    def transition(self, state, action, noise, params):
        after, reward = super().transition(state, action, noise, params)
        return after, reward[None]


class IntegerGrade(Walk):
    def score(self, state, params):
        return jnp.int32(1)


class PythonBranch(Walk):
    def transition(self, state, action, noise, params):
        after, reward = super().transition(state, action, noise, params)
        if reward > 0:
            return after, reward
        return after, jnp.zeros_like(reward)


class LeavesSpace(Walk):
    def observe(self, state, params):
        return 2 * state.position[None] + jnp.float32(0.5)


class NamesTooMany(Walk):
    observation_names: ClassVar = ("position", "velocity")


class EventUnnamed(Walk):
    event_names: ClassVar = ()


class WideActionSpace(Walk):
    def action_space(self, params):
        return Discrete(4)


class ShortMask(Walk):
    def action_mask(self, state, params):
        return super().action_mask(state, params)[:2]


class NotFinite(Walk):
    def transition(self, state, action, noise, params):
        after, reward = super().transition(state, action, noise, params)
        return after, jnp.where(state.step == 3, jnp.float32(jnp.nan), reward)


class RichReward(Walk):
    def transition(self, state, action, noise, params):
        after, reward = super().transition(state, action, noise, params)
        return after, reward * 100


class HighGrade(Walk):
    def score(self, state, params):
        return state.position + 1


class LateEnd(Walk):
    def is_terminal(self, state, params):
        return state.step > params.max_steps


class FinishedAtStart(Walk):
    def is_terminal(self, state, params):
        return state.step >= 0


class TruncatesItself(Walk):
    def advance(self, state, action, noise, params):
        step = super().advance(state, action, noise, params)
        return step._replace(truncated=step.terminated)


class EndForgotten(Walk):
    def advance(self, state, action, noise, params):
        step = super().advance(state, action, noise, params)
        return step._replace(terminated=step.state.step == params.max_steps + 1)


class MovesAfterTheEnd(Walk):
    def advance(self, state, action, noise, params):
        step = super().advance(state, action, noise, params)
        finished = self.is_terminal(state, params)
        drift = jnp.where(finished, jnp.float32(0.125), 0)
        position = jnp.clip(step.state.position - drift, 0, 1)
        return step._replace(state=replace(step.state, position=position))


class PaysAfterTheEnd(Walk):
    def advance(self, state, action, noise, params):
        step = super().advance(state, action, noise, params)
        finished = self.is_terminal(state, params)
        return step._replace(reward=jnp.where(finished, jnp.float32(0.5), step.reward))


class MaskAfterTheEnd(Walk):
    def action_mask(self, state, params):
        return super().action_mask(state, params).at[0].set(~self.is_terminal(state, params))


class NothingLegal(Walk):
    def action_mask(self, state, params):
        return super().action_mask(state, params) & (state.step != 2)


class MaskUnknownToIsLegal(Walk):
    """Forbids resting on odd steps, but only in the mask."""

    def action_mask(self, state, params):
        even = (state.step % 2 == 0) | self.is_terminal(state, params)
        return super().action_mask(state, params).at[2].set(even)


class LegalFlagged(Walk):
    def is_legal(self, state, action, params):
        return super().is_legal(state, action, params) & (action != 2)


class IllegalPaid(Walk):
    def transition(self, state, action, noise, params):
        after, reward = super().transition(state, action, noise, params)
        return after, jnp.where(action == 3, jnp.float32(0.5), reward)


class ClampedIndex(Walk):
    """Out-of-range actions pay nothing, but play the nearest action."""

    def transition(self, state, action, noise, params):
        legal = super().is_legal(state, action, params)
        played = jnp.clip(action, 0, 2)
        after, reward = super().transition(state, played, noise, params)
        return after, jnp.where(legal, reward, 0)


class ExtraInfo(Walk):
    def advance(self, state, action, noise, params):
        step = super().advance(state, action, noise, params)
        return step._replace(info={**step.info, "slip": noise.slip})


class NoInvalidFlag(Walk):
    def advance(self, state, action, noise, params):
        return super().advance(state, action, noise, params)._replace(info={})

    def empty_info(self, params):
        return {}


class DeafDraw(Walk):
    def draw(self, key):
        return Noise(jnp.float32(0.5))


class GlobalDraw(Walk):
    def draw(self, key):
        return Noise(uniform_pair(key, 0)[0] * jnp.float32(random.random()))


class OtherNoise(Walk):
    def step(self, key, state, action, params):
        return self.advance(state, action, Noise(uniform_pair(key, 1)[0]), params)


class WideDraw(Walk):
    def draw(self, key):
        return Noise(jax.random.uniform(key).astype(jnp.float32))


class WideCounter(Walk):
    def start(self, key, params):
        return replace(super().start(key, params), step=jnp.zeros((), int))


class OtherUnderVmap(Walk):
    def transition(self, state, action, noise, params):
        after, reward = super().transition(state, action, noise, params)
        return replace(after, position=_shrunk_under_vmap(after.position)), reward


@custom_vmap
def _shrunk_under_vmap(x):
    return x


@_shrunk_under_vmap.def_vmap
def _rule(axis_size, in_batched, x):
    return x * jnp.float32(0.99999994), in_batched[0]


class OtherStartUnderVmap(Walk):
    def start(self, key, params):
        state = super().start(key, params)
        return replace(state, position=_shrunk_under_vmap(state.position))


class EqualsNoCopy(Walk):
    __eq__ = object.__eq__
    __hash__ = object.__hash__


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class KeyState(State):
    key: jax.Array


class KeyInState(Walk):
    def start(self, key, params):
        state = super().start(key, params)
        return KeyState(state.position, state.step, key)


class StaticStride:
    """Params whose stride is compiled in."""

    @staticmethod
    def params():
        cls = dataclass(frozen=True)(
            type("Static", (), {"__annotations__": Params.__annotations__})
        )
        jax.tree_util.register_dataclass(cls, data_fields=["max_steps"], meta_fields=["stride"])
        return cls(PARAMS.max_steps, 0.25)


FAULTS = [
    (Walk(), replace(PARAMS, stride=0.25), r"params\.stride is 0\.25: use an array"),
    (Walk(), replace(PARAMS, stride=jnp.asarray(0.25)), r"params\.stride is .* definite dtype"),
    (Walk(), StaticStride.params(), r"params\.stride is 0\.25, a static field"),
    (PythonBranch(), PARAMS, r"run under jit.*TracerBoolConversionError"),
    (WeakStart(), PARAMS, r"state\.step is int32\[\] weak"),
    (GrowingCounter(), PARAMS, r"state\.step is float32\[\]: it must be int32\[\]"),
    (VectorReward(), PARAMS, r"reward is float32\[1\]: it must be float32\[\]"),
    (IntegerGrade(), PARAMS, r"grade is int32\[\].*float"),
    (ExtraInfo(), PARAMS, r"info has leaves \['info\.invalid_action', 'info\.slip'\]"),
    (NoInvalidFlag(), PARAMS, r"info has no 'invalid_action'"),
    (ShortMask(), PARAMS, r"action_mask is bool\[2\]: it must be bool\[3\]"),
    (MixedFloats(), PARAMS, r"state\.position is float16 and params\.stride is float32"),
    (KeyInState(), PARAMS, r"state\.key is a random key"),
    (NotFinite(), PARAMS, r"step\.reward is \[nan\].*finite"),
    (RichReward(), PARAMS, r"reward is \[.*\]: reward_range is \[-1\.0, 1\.0\]"),
    (HighGrade(), PARAMS, r"grade is \[1\..*\[0, 1\]"),
    (LeavesSpace(), PARAMS, r"obs is array\(\[[12]\..* must lie in Box"),
    (NamesTooMany(), PARAMS, r"observation_names has 2 names: there are 1"),
    (EventUnnamed(), PARAMS, r"event_names has 0 names: there are 1"),
    (WideActionSpace(), PARAMS, r"action_space has n = 4: the mask has 3"),
    (EqualsNoCopy(), PARAMS, r"step was traced 2 times"),
    (FinishedAtStart(), PARAMS, r"is_terminal is True at the start"),
    (TruncatesItself(), PARAMS, r"truncated is True"),
    (LateEnd(), PARAMS, r"terminated is False after max_steps = 6 steps"),
    (EndForgotten(), PARAMS, r"terminated differs from is_terminal"),
    (MovesAfterTheEnd(), PARAMS, r"state after the end and action 0\.position is"),
    (PaysAfterTheEnd(), PARAMS, r"reward is \[0\.5\] after the end"),
    (MaskAfterTheEnd(), PARAMS, r"action_mask has a False after the end"),
    (NothingLegal(), PARAMS, r"action_mask is all False at step 2"),
    (MaskUnknownToIsLegal(), PARAMS, r"invalid_action is False for illegal action 2"),
    (LegalFlagged(), PARAMS, r"invalid_action is True for legal action 2"),
    (IllegalPaid(), PARAMS, r"reward is \[0\.5\] for illegal action 3"),
    (ClampedIndex(), PARAMS, r"state after illegal action .*\.position is"),
    (DeafDraw(), PARAMS, r"noise is the same for 64 keys"),
    (GlobalDraw(), PARAMS, r"noise\.slip is .* from the key alone"),
    (OtherNoise(), PARAMS, r"advance\..* step\(key\) must be advance\(draw\(key\)\)"),
    (OtherUnderVmap(), PARAMS, r"step\.obs is .* vmap must give the bits"),
    (OtherStartUnderVmap(), PARAMS, r"reset\..* is .* vmap must give the bits"),
    (WideDraw(), PARAMS, r"x64 on and off must give the same"),
    (WideCounter(), PARAMS, r"state\.step is int64 and int32: x64 on and off"),
]


@pytest.mark.parametrize(
    ("env", "params", "says"),
    FAULTS,
    ids=[f"{type(e).__name__}-{i}" for i, (e, *_) in enumerate(FAULTS)],
)
def test_each_planted_fault_is_found_and_named(env, params, says):
    with pytest.raises(ConformanceError, match=says):
        check_env(env, params)


def test_what_is_found_is_an_assertion_error():
    with pytest.raises(AssertionError):
        check_env(HighGrade(), PARAMS)
