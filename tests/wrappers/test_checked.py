import re
from dataclasses import replace

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lifedrift_jax
from lifedrift_jax.wrappers import AutoReset, Checked, EpisodeStats, TimeLimit


@pytest.fixture(scope="module")
def life_drift():
    env, params = lifedrift_jax.make("life_drift/drift_correction-v0")
    _, state = env.reset(jax.random.key(0), params)
    return env, params, state


def test_values_that_pass_are_those_of_the_env(life_drift):
    env, params, state = life_drift
    checked = Checked(env)
    chex.assert_trees_all_equal(
        checked.reset(jax.random.key(0), params), env.reset(jax.random.key(0), params), strict=True
    )
    for t, action in enumerate([0, np.int64(1), jnp.int32(2), "insert_break", np.array(5)]):
        index = env.action_names.index(action) if isinstance(action, str) else int(action)
        key = jax.random.key(t)
        step = env.step(key, state, jnp.int32(index), params)
        chex.assert_trees_all_equal(checked.step(key, state, action, params), step, strict=True)
        advanced = checked.advance(state, action, env.draw(key), params)
        chex.assert_trees_all_equal(advanced, step, strict=True)
        state = step.state


@pytest.mark.parametrize(
    "action", [6, -1, 99, -7, 2.7, float("nan"), "6", "", True, None, [1], np.array([1]), 2**70]
)
def test_a_wrong_action_is_named_with_the_legal_ones(life_drift, action):
    env, params, state = life_drift
    with pytest.raises(ValueError, match=re.escape(f"action is {action!r}")) as error:
        Checked(env).step(jax.random.key(0), state, action, params)
    assert all(f"{i} {name}" in str(error.value) for i, name in enumerate(env.action_names))


def test_an_action_outside_the_mask_is_named_with_those_inside(walk):
    env, params = walk
    _, state = env.reset(jax.random.key(0), params)
    state = state._replace(position=jnp.float32(0.75))
    with pytest.raises(ValueError, match=r"action is 2: .* one of 0 left, 1 right$"):
        Checked(env).step(jax.random.key(0), state, 2, params)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("field", ["alignment", "energy_sum"])
def test_a_number_that_is_not_finite_is_named_by_its_field(life_drift, field, value):
    env, params, state = life_drift
    bad = replace(state, **{field: jnp.float32(value)})
    with pytest.raises(ValueError, match=f"^{field} of the state before the step is .*finite"):
        Checked(env).step(jax.random.key(0), bad, 0, params)


def test_the_field_of_a_wrapped_state_is_named_by_its_path(life_drift):
    env, params, _ = life_drift
    checked = Checked(AutoReset(EpisodeStats(TimeLimit(env, 5))))
    _, state = checked.reset(jax.random.key(0), params)
    state = checked.step(jax.random.key(0), state, 0, params).state
    inner = state.env_state
    bad = state._replace(
        env_state=inner._replace(env_state=replace(inner.env_state, focus=jnp.float32(np.nan)))
    )
    with pytest.raises(ValueError, match=r"^env_state\.env_state\.focus of the state before"):
        checked.step(jax.random.key(0), bad, 0, params)


def test_a_variable_outside_its_space_is_named(life_drift):
    env, params, state = life_drift
    bad = replace(state, fatigue=jnp.float32(1.2))
    with pytest.raises(ValueError, match=r"observation fatigue .* is 1\.2.* be in \[0\.0, 1\.0\]"):
        Checked(env).step(jax.random.key(0), bad, 0, params)


def test_what_the_env_does_wrong_is_named(walk):
    env, params = walk

    class Rich(type(env)):
        def transition(self, state, action, noise, params):
            return state, jnp.float32(3)

    class Lost(type(env)):
        def transition(self, state, action, noise, params):
            return state._replace(position=jnp.float32(np.nan)), jnp.float32(0)

    class Tall(type(env)):
        def observe(self, state, params):
            return jnp.zeros(3, jnp.float32)

    class Late(type(env)):
        def start(self, key, params):
            return super().start(key, params)._replace(time=jnp.int32(100))

    _, state = env.reset(jax.random.key(0), params)
    for wrong, message in (
        (Rich(), r"reward is 3\.0: it must be in \[-1\.0, 1\.0\]"),
        (Lost(), "position of the state after the step is nan"),
        (Tall(), r"observation of the state before the step is float32\(3,\): .*shape=\(2,\)"),
    ):
        with pytest.raises(ValueError, match=message):
            Checked(wrong).step(jax.random.key(0), state, 0, params)
    with pytest.raises(ValueError, match=r"observation time of the first state is 1\.5625"):
        Checked(Late()).reset(jax.random.key(0), params)


@pytest.mark.parametrize("transform", [jax.jit, lambda f: jax.vmap(f, (None, None, 0, None))])
def test_inside_compiled_code_it_says_that_it_works_outside(life_drift, transform):
    env, params, state = life_drift
    step = transform(Checked(env).step)
    with pytest.raises(TypeError, match="Checked works outside jit"):
        step(jax.random.key(0), state, jnp.zeros(2, jnp.int32), params)
    with pytest.raises(TypeError, match="Checked works outside jit"):
        jax.jit(Checked(env).reset)(jax.random.key(0), params)


def test_the_env_inside_computes_what_it_did(life_drift):
    env, params, state = life_drift

    def program() -> str:
        step = jax.make_jaxpr(lambda *args: env.step(jax.random.key(0), *args))
        return str(step(state, jnp.int32(0), params))

    before = program()
    Checked(env).step(jax.random.key(0), state, 0, params)
    assert program() == before
