"""Episodes addressed by (seed, index), played step by step from outside compiled code.

The keys are those of `rng`, so an episode played here equals the one that `rollout` and a
sweep play, bit for bit.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from lifedrift_jax.core import Env, Step, select
from lifedrift_jax.rng import episode_key, reset_key, step_key


class Seat(NamedTuple):
    """An episode in progress; add a leading axis [B] for a batch.

    Attributes:
        root: key of the seed, see `rng.root_key`.
        index: () uint32, index of the episode under that seed.
        time: () int32, steps taken.
        state: the env's state.
    """

    root: jax.Array
    index: jax.Array
    time: jax.Array
    state: Any


class Report(NamedTuple):
    """What a player is told besides a step's results.

    Attributes:
        index: () uint32, index of the episode.
        time: () int32, steps taken.
        score: () float in [0, 1], the grade so far.
        action_mask: [A] bool, True = legal.
    """

    index: jax.Array
    time: jax.Array
    score: jax.Array
    action_mask: jax.Array


def report(env: Env, seat: Seat, params: Any) -> Report:
    """The report on a seat."""
    grade, mask = env.grade(seat.state, params), env.action_mask(seat.state, params)
    return Report(seat.index, seat.time, grade, mask)


def begin(env: Env, root: jax.Array, index: jax.Array, params: Any) -> tuple[jax.Array, Seat]:
    """First observation and seat of episode `index` under `root`."""
    obs, state = env.reset(reset_key(episode_key(root, index)), params)
    return obs, Seat(root, jnp.asarray(index, jnp.uint32), jnp.int32(0), state)


def play(env: Env, seat: Seat, action: jax.Array, params: Any) -> Step:
    """One step of the env; `Step.state` is the seat after it."""
    key = step_key(episode_key(seat.root, seat.index), seat.time)
    step = env.step(key, seat.state, action, params)
    return step._replace(state=seat._replace(time=seat.time + 1, state=step.state))


@partial(jax.jit, static_argnames="env")
def begin_one(
    env: Env, root: jax.Array, index: jax.Array, params: Any
) -> tuple[jax.Array, Seat, Report]:
    """`begin`, and the report on the seat."""
    obs, seat = begin(env, root, index, params)
    return obs, seat, report(env, seat, params)


@partial(jax.jit, static_argnames="env")
def play_one(env: Env, seat: Seat, action: jax.Array, params: Any) -> tuple[Step, Report]:
    """`play`, and the report on the seat after it."""
    step = play(env, seat, action, params)
    return step, report(env, step.state, params)


@partial(jax.jit, static_argnames="env")
def begin_batch(
    env: Env, root: jax.Array, index: jax.Array, params: Any
) -> tuple[jax.Array, Seat, Report]:
    """`begin_one` for [B] roots and indices."""
    return jax.vmap(begin_one, (None, 0, 0, None))(env, root, index, params)


class BatchStep(NamedTuple):
    """A step of [B] seats, some of which go on to their next episode.

    Attributes:
        last: what the step itself came to; `last.state` are the seats before any restart.
        last_report: its report.
        obs: [B, ...] observations to act on, first ones where an episode began.
        seat: [B] seats to go on from.
        report: the report on them.
    """

    last: Step
    last_report: Report
    obs: jax.Array
    seat: Seat
    report: Report


@partial(jax.jit, static_argnames=("env", "same_step"))
def play_batch(
    env: Env,
    seat: Seat,
    waiting: jax.Array,
    action: jax.Array,
    stride: jax.Array,
    params: Any,
    *,
    same_step: bool,
) -> BatchStep:
    """One step of [B] seats.

    Args:
        env, params: shared by all.
        seat: [B] seats.
        waiting: [B] bool, the episode ended in an earlier step; the action is ignored.
        action: [B] int32.
        stride: () uint32, added to a seat's index when its next episode begins.
        same_step: True = begin the next episode in the step that ends one, False = in the
            step after it, for the seats that are waiting.
    """
    last = jax.vmap(play, (None, 0, 0, None))(env, seat, action, params)
    last_report = jax.vmap(report, (None, 0, None))(env, last.state, params)
    restart = (last.terminated | last.truncated) if same_step else waiting
    go_on = (last.obs, last.state, last_report)

    def next_episodes() -> tuple[jax.Array, Seat, Report]:
        first = begin_batch(env, seat.root, seat.index + stride, params)
        return jax.vmap(select)(restart, first, go_on)

    return BatchStep(last, last_report, *jax.lax.cond(jnp.any(restart), next_episodes, lambda: go_on))
