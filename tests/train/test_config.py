"""Sizes and numbers of a run: what is refused, what is derived, what shares a compilation."""

import re
from dataclasses import fields, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from train import Hyper, PPOConfig
from train.config import OBJECTIVES, RANGES

SIZES = (
    *("num_envs", "num_steps", "minibatches", "epochs"),
    *("total_updates", "eval_every", "eval_episodes", "eval_steps"),
)
NO_SIZE = (0, -1, True, 2.5)

# Values just outside what each hyper-parameter's description allows.
OUTSIDE = {
    "learning_rate": (-1e-9, 1.001),
    "learning_rate_decay": (-0.1, 1.001),
    "gamma": (-0.1, 1.001),
    "gae_lambda": (-0.1, 1.001),
    "clip": (0.0, -0.2),
    "entropy": (-1e-9,),
    "value": (-1e-9,),
    "max_grad_norm": (0.0, -0.5),
}

# Kinds of number that people write.
KINDS = (float, np.float32, np.float64, np.asarray, jnp.asarray, jnp.float32)


# Sizes.


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("value", NO_SIZE)
def test_a_size_that_is_no_positive_whole_number_is_refused(name, value):
    legal = "it must be a whole number of at least 1"
    with pytest.raises(ValueError, match=re.escape(f"{name} is {value!r}: {legal}")):
        PPOConfig(**{name: value})


@pytest.mark.parametrize("value", NO_SIZE)
def test_a_width_that_is_no_positive_whole_number_is_refused(value):
    with pytest.raises(ValueError, match=re.escape(f"hidden_sizes is {value!r}: ")):
        PPOConfig(hidden_sizes=(64, value))


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        (
            {"num_envs": 5, "num_steps": 3, "minibatches": 4},
            "minibatches is 4, which does not divide num_envs * num_steps = 15: "
            "use one of 1, 3, 5, 15",
        ),
        (
            {"num_envs": 5, "num_steps": 3, "minibatches": 16},
            "minibatches is 16, which does not divide num_envs * num_steps = 15: "
            "use one of 1, 3, 5, 15",
        ),
        (
            {"total_updates": 9, "eval_every": 2},
            "eval_every is 2, which does not divide total_updates = 9: use one of 1, 3, 9",
        ),
        (
            {"total_updates": 3, "eval_every": 30},
            "eval_every is 30, which does not divide total_updates = 3: use one of 1, 3",
        ),
        (  # so large that not every number up to it can be tried
            {"num_envs": 10**6, "num_steps": 10**6, "minibatches": 3},
            "minibatches is 3, which does not divide num_envs * num_steps = 1000000000000: "
            "use one of 1, 2, 4, 5, 8, 10, 16, 20",
        ),
    ],
)
def test_parts_that_do_not_divide_are_refused_with_all_numbers_and_choices(sizes, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        PPOConfig(**sizes)


@given(st.integers(1, 3000), st.integers(1, 3000))
def test_every_choice_that_a_refusal_names_is_legal(num_envs, minibatches):
    build = partial(PPOConfig, num_envs=num_envs, num_steps=7)
    if num_envs * 7 % minibatches == 0:
        assert build(minibatches=minibatches).minibatches == minibatches
        return
    with pytest.raises(ValueError, match=f"minibatches is {minibatches}, ") as refusal:
        build(minibatches=minibatches)
    choices = [int(n) for n in str(refusal.value).split("use one of ")[1].split(", ")]
    assert [build(minibatches=n).minibatches for n in choices] == choices
    assert choices == sorted(set(choices))


def test_sizes_may_be_1():
    config = PPOConfig(num_envs=1, num_steps=1, minibatches=1, total_updates=1, eval_every=1)
    assert (config.batch_size, config.total_steps, config.num_evaluations) == (1, 1, 1)


def test_derived_sizes_by_hand():
    config = PPOConfig(
        num_envs=5, num_steps=4, minibatches=2, epochs=3, total_updates=6, eval_every=2
    )
    assert config.batch_size == 20
    assert config.total_steps == 120
    assert config.gradient_steps == 36
    assert config.num_evaluations == 3


def test_whole_numbers_of_other_types_become_ints_and_a_list_a_tuple():
    config = PPOConfig(num_envs=np.int64(256), num_steps=40.0, hidden_sizes=[64, np.int32(64)])
    assert config == PPOConfig()
    assert hash(config) == hash(PPOConfig())
    numbers = (config.num_envs, config.num_steps, *config.hidden_sizes)
    assert [type(n) for n in numbers] == [int] * 4


def test_equal_configs_share_a_compilation_and_others_do_not():
    traces = []

    @partial(jax.jit, static_argnums=0)
    def size(config):
        traces.append(config)
        return jnp.int32(config.batch_size)

    for config in (PPOConfig(), PPOConfig(hidden_sizes=[64, 64]), PPOConfig(num_envs=512)):
        assert size(config) == config.num_envs * 40
    assert len(traces) == 2


# Numbers.


def test_every_hyper_parameter_has_a_range_that_holds_its_default():
    assert list(RANGES) == [field.name for field in fields(Hyper)]
    assert Hyper().checked() == Hyper().checked()


@pytest.mark.parametrize("name", RANGES)
def test_a_number_that_makes_no_sense_is_refused_and_named(name):
    for value in (np.nan, np.inf, -np.inf, *OUTSIDE.get(name, ())):
        for number in (value, np.float32(value), jnp.float32(value)):
            shown = re.escape(f"{name} is {float(number)}: it must be finite, in [")
            with pytest.raises(ValueError, match=shown):
                Hyper(**{name: number}).checked()


def test_a_refusal_names_the_legal_range():
    with pytest.raises(ValueError, match=r"gamma is 1.5: it must be finite, in \[0, 1\]"):
        Hyper(gamma=1.5).checked()


def test_what_float32_cannot_hold_is_refused():
    with pytest.raises(ValueError, match=r"entropy is 1e\+39: it must be finite"):
        Hyper(entropy=1e39).checked()


@pytest.mark.parametrize("value", ["0.9", None, True, "x"])
def test_what_is_no_number_is_refused_and_named(value):
    with pytest.raises(ValueError, match=rf"gamma is {value!r}: it must be finite"):
        Hyper(gamma=value).checked()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_sizes": 5}, "hidden_sizes is 5: use widths"),
        ({"encoder": "item"}, "no encoder 'item' .did you mean 'items'.*: use one of flat, items"),
        ({"encoder": None}, "no encoder None: use one of flat, items"),
        ({"normalize_observations": 3}, "normalize_observations is 3: use True or False"),
        ({"eval_seed": -1}, "seed is -1"),
        ({"total_updates": 2**31, "eval_every": 2**20}, "must be below 53687091, as steps are"),
    ],
)
def test_other_fields_of_the_wrong_kind_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        PPOConfig(**change)


def test_one_bad_number_among_many_is_refused():
    with pytest.raises(ValueError, match=r"gamma is \[0.5, 1.5\]: "):
        Hyper(gamma=np.array([0.5, 1.5])).checked()


def test_numbers_on_the_border_are_legal():
    zeros = {name: 0 for name, (low, _) in RANGES.items() if low == 0}
    ones = {name: 1 for name, (_, high) in RANGES.items() if high == 1}
    assert len(zeros) == 6
    assert len(ones) == 4
    for numbers in (zeros, ones):
        checked = Hyper(**numbers).checked()
        assert {name: float(getattr(checked, name)) for name in numbers} == numbers


@pytest.mark.parametrize("name", RANGES)
def test_twenty_values_of_a_hyper_parameter_of_any_type_are_one_trace(name):
    traces = []

    @jax.jit
    def total(hyper):
        traces.append(name)
        return sum(jax.tree.leaves(hyper))

    for i, value in enumerate(np.linspace(0.01, 0.99, 20)):
        hyper = Hyper(**{name: KINDS[i % len(KINDS)](value)})
        rest = sum(jax.tree.leaves(replace(hyper, **{name: 0.0})))
        assert np.isclose(total(hyper.checked()), rest + value, rtol=1e-5)
    total(Hyper(**{name: 1}).checked())
    assert len(traces) == 1


@pytest.mark.parametrize("x64", [False, True])
def test_checked_numbers_are_strong_float32(x64):
    with jax.enable_x64(x64):
        leaves = jax.tree.leaves(Hyper(gamma=1, clip=jnp.asarray(0.1)).checked())
    assert {(leaf.dtype, leaf.weak_type) for leaf in leaves} == {(np.dtype(np.float32), False)}


def test_numbers_are_mapped_together_with_keys_in_compiled_code():
    def draw(key, hyper):
        return hyper.checked().gamma * jax.random.uniform(key, dtype=jnp.float32)

    keys = jax.random.split(jax.random.key(0), 3)
    gammas = np.array([0.1, 0.5, 0.9], np.float32)
    axes = (0, replace(jax.tree.map(lambda _: None, Hyper()), gamma=0))
    mapped = jax.jit(jax.vmap(draw, axes))(keys, Hyper(gamma=gammas))
    alone = [draw(key, Hyper(gamma=gamma)) for key, gamma in zip(keys, gammas, strict=True)]
    assert np.allclose(mapped, alone)


def test_objectives_weigh_the_reward_the_score_or_both():
    weights = {name: Hyper(**weights) for name, weights in OBJECTIVES.items()}
    assert {name: (h.reward_weight, h.grade_weight) for name, h in weights.items()} == {
        "reward": (1, 0),
        "grade": (0, 1),
        "mix": (1, 1),
    }
