"""Params that make no sense are refused by name."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lifedrift_jax
from lifedrift_jax.core import integer_action
from lifedrift_jax.life_drift import day_phase

ID = "life_drift/drift_correction-v0"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("task", 7),
        ("task", -1),
        ("max_steps", 0),
        ("max_steps", 2_000_000_000),
        ("start", [0.5, 0.5, 0.5, 0.5, 1.5]),
        ("natural_low", [0.5, 0.5, 0.5]),
        ("reward.high", 50),
        ("reward.low", 1.5),
        ("grade_weights", [3] + [0] * 8),
        ("grade_weights", [-1] + [0] * 8),
        ("grade_target", 0),
        ("grade_high", 3),
        ("grade_low", 0.995),
    ],
)
def test_a_number_out_of_range_is_refused_by_name(name, value):
    with pytest.raises(ValueError, match=f"{name} is .*: it must be"):
        lifedrift_jax.make(ID, **{name: value})


def test_the_longest_horizon_keeps_its_day_phases():
    _, params = lifedrift_jax.make(ID, max_steps=1_000_000)
    phases = [int(day_phase(jnp.int32(t), params.max_steps)) for t in (0, 199_999, 200_000, 10**6)]
    assert phases == [0, 0, 1, 4]


def test_a_wide_action_is_never_cut_to_a_legal_one():
    env, _ = lifedrift_jax.make(ID)
    with jax.enable_x64(True):
        wide = integer_action(np.int64(2**32 + 1))
        assert wide.dtype == jnp.int32 and not 0 <= int(wide) < env.num_actions


@pytest.mark.parametrize("action", [jnp.float32(2.7), jnp.float32(jnp.nan), jnp.bool_(True)])
def test_transition_refuses_actions_that_are_no_integers(action):
    env, params = lifedrift_jax.make(ID)
    state, noise = env.initial_state(params), env.draw(lifedrift_jax.root_key(0))
    with pytest.raises(TypeError, match="use one integer"):
        env.transition(state, action, noise, params)
