from dataclasses import dataclass
from typing import ClassVar

import jax
import numpy as np
import pytest

import lifedrift_jax
from lifedrift_jax import baselines, core, life_drift
from lifedrift_jax.baselines import make_policy, policy_names
from lifedrift_jax.rng import policy_key, root_key
from lifedrift_jax.wrappers import EpisodeStats

ENV, PARAMS = lifedrift_jax.make("life_drift/energy_balance-v0")
MALFORMED = ("", "gredy", "Random", "constant", "random:1", "greedy:64", "rule:")
RESERVED = ("heuristic", "optimal", "planner")  # for policies that are not there yet
NAMES = ("random", "constant:ACTION", "round_robin", "rule", "greedy")


@dataclass(frozen=True)
class Foreign(core.Env):
    """An env of no family of the package."""

    action_names: ClassVar[tuple[str, ...]] = ("left", "right")


def played(name, env=ENV):
    policy = make_policy(name, env)
    obs, state = ENV.reset(root_key(0), PARAMS)
    mask = ENV.action_mask(state, PARAMS)
    carry = policy.init(root_key(1), PARAMS)
    return int(jax.jit(policy.act)(policy_key(root_key(0), 0), obs, mask, carry)[0])


def test_names_that_fit_are_listed_and_nothing_else():
    assert policy_names(ENV) == NAMES
    assert policy_names(Foreign()) == NAMES[:3]


@pytest.mark.parametrize("name", [n for n in NAMES if n != "constant:ACTION"])
def test_every_listed_name_makes_one_policy_of_that_name(name):
    policy = make_policy(name, ENV)
    assert policy.name == name
    assert make_policy(name, life_drift.LifeDrift()) is policy
    assert played(name) in range(6)


@pytest.mark.parametrize("index", range(6))
def test_constant_takes_an_action_by_name_and_by_index(index):
    name = f"constant:{life_drift.ACTIONS[index]}"
    assert make_policy(f"constant:{index}", ENV) is make_policy(name, ENV)
    assert make_policy(name, ENV).name == name
    assert played(name) == index


def test_a_wrapped_env_has_the_policies_of_the_env_inside():
    wrapped = EpisodeStats(ENV)
    assert policy_names(wrapped) == NAMES
    assert make_policy("greedy", wrapped) is make_policy("greedy", ENV)


@pytest.mark.parametrize("name", [*MALFORMED, *RESERVED])
def test_an_unknown_policy_is_refused_with_the_legal_names(name):
    with pytest.raises(ValueError) as error:
        make_policy(name, ENV)
    assert repr(name) in str(error.value)
    assert ", ".join(NAMES) in str(error.value)


def test_a_mistyped_policy_gets_a_hint():
    with pytest.raises(ValueError, match="did you mean 'greedy'"):
        make_policy("gredy", ENV)


@pytest.mark.parametrize("action", ["", "6", "-1", "99", "2.0", "insert_brake", "ACTION", "True"])
def test_an_unknown_action_is_refused_with_the_legal_ones(action):
    with pytest.raises(ValueError) as error:
        make_policy(f"constant:{action}", ENV)
    assert all(name in str(error.value) for name in life_drift.ACTIONS)


@pytest.mark.parametrize("name", ["rule", "greedy"])
def test_a_policy_of_another_family_is_refused(name):
    with pytest.raises(ValueError, match=f"no policy for Foreign '{name}'.*round_robin$"):
        make_policy(name, Foreign())
    assert make_policy("constant:right", Foreign()).name == "constant:right"


def test_public_names_exist_and_are_listed():
    assert all(hasattr(baselines, name) for name in baselines.__all__)
    assert np.array_equal(baselines.__all__, sorted(baselines.__all__))
