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
    """An episode in progress.

    Attributes:
        root: key of the seed, see `rng.root_key`.
        episode: () uint32, index of the episode under that seed.
        time: () int32, steps taken.
        state: the env's state.
    """

    root: jax.Array
    episode: jax.Array
    time: jax.Array
    state: Any


class Report(NamedTuple):
    """What a player is told about a seat besides observation, reward and flags.

    Attributes:
        episode: () uint32, index of the episode.
        time: () int32, steps taken.
        score: () float in [0, 1], the grade so far; final once the episode has ended.
        action_mask: [A] bool, True = legal.
        info: the step's info; `empty_info` before the first.
    """

    episode: jax.Array
    time: jax.Array
    score: jax.Array
    action_mask: jax.Array
    info: dict[str, jax.Array]


class BatchStep(NamedTuple):
    """A step of [B] seats, some of which go on to their next episode.

    Attributes:
        last: what the step itself came to; `last.state` are the seats before a restart.
        last_report: the report on them.
        obs: [B, ...] observations to act on, first ones where an episode began.
        seat: [B] seats to go on from.
        report: the report on them.
    """

    last: Step
    last_report: Report
    obs: jax.Array
    seat: Seat
    report: Report


@partial(jax.jit, static_argnames="env")
def begin(
    env: Env, root: jax.Array, episode: jax.Array, params: Any
) -> tuple[jax.Array, Seat, Report]:
    """Observation, seat and report at the start of an episode (() uint32) under `root`."""
    obs, state = env.reset(reset_key(episode_key(root, episode)), params)
    seat = Seat(root, episode, jnp.int32(0), state)
    return obs, seat, _report(env, seat, env.empty_info(params), params)


@partial(jax.jit, static_argnames="env")
def play(env: Env, seat: Seat, action: jax.Array, params: Any) -> tuple[Step, Report]:
    """One step; its `state` is the seat after it. `action` is a () int32."""
    key = step_key(episode_key(seat.root, seat.episode), seat.time)
    step = env.step(key, seat.state, action, params)
    after = seat._replace(time=seat.time + 1, state=step.state)
    return step._replace(state=after), _report(env, after, step.info, params)


@partial(jax.jit, static_argnames="env")
def begin_batch(
    env: Env, root: jax.Array, episode: jax.Array, params: Any
) -> tuple[jax.Array, Seat, Report]:
    """`begin` for [B] roots and episodes."""
    return jax.vmap(lambda r, e: begin(env, r, e, params))(root, episode)


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
        env: the env of all seats.
        seat: [B] seats.
        waiting: [B] bool, the episode ended in the step before; the action has no effect.
        action: [B] int32.
        stride: () uint32, what is added to a seat's episode for its next one.
        params: shared by all seats.
        same_step: True = the next episode begins in the step that ends one; False = in the
            step after it, for the seats that are waiting.
    """
    last, last_report = jax.vmap(lambda s, a: play(env, s, a, params))(seat, action)
    restart = (last.terminated | last.truncated) if same_step else waiting
    stay = (last.obs, last.state, last_report)

    def next_episodes() -> tuple[jax.Array, Seat, Report]:
        first = begin_batch(env, seat.root, seat.episode + stride, params)
        return jax.vmap(select)(restart, first, stay)

    return BatchStep(
        last, last_report, *jax.lax.cond(jnp.any(restart), next_episodes, lambda: stay)
    )


def _report(env: Env, seat: Seat, info: dict[str, jax.Array], params: Any) -> Report:
    mask = env.action_mask(seat.state, params)
    return Report(seat.episode, seat.time, env.grade(seat.state, params), mask, info)
