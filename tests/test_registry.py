"""Ids, hints for misspelt names, and parameter overrides."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lifedrift_jax import make, register, registered, registry, rollout
from lifedrift_jax.baselines import simple
from lifedrift_jax.life_drift import LifeDrift
from lifedrift_jax.rng import episode_key, root_key

EASY = "life_drift/drift_correction-v0"
TASKS = ("drift_correction", "energy_balance", "long_term_stability")


@pytest.fixture
def own_registry(monkeypatch):
    """A copy of the table, so that a test may register ids."""
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))


def test_the_three_tasks_are_registered():
    assert registered()[:3] == tuple(f"life_drift/{task}-v0" for task in TASKS)


@pytest.mark.parametrize("env_id", registered())
def test_equal_ids_make_equal_envs_and_params(env_id):
    (env, params), (again, same) = make(env_id), make(env_id)
    assert env == again
    assert hash(env) == hash(again)
    assert jax.tree.structure(params) == jax.tree.structure(same)
    assert jax.tree.all(jax.tree.map(np.array_equal, params, same))


@pytest.mark.parametrize("x64", [False, True])
def test_params_are_float32_and_int32_arrays_with_x64_on_and_off(x64):
    with jax.enable_x64(x64):
        _, params = make(EASY, cascade_threshold=0.9, max_steps=7)
    for leaf in jax.tree.leaves(params):
        assert isinstance(leaf, jax.Array)
        assert leaf.dtype in (jnp.float32, jnp.int32)
        assert not leaf.weak_type


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("life_drift/drift_corection-v0", "did you mean life_drift/drift_correction-v0"),
        ("drift_correction-v0", "did you mean life_drift/drift_correction-v0"),
        ("life_drift/energy_balance-v99", "life_drift/energy_balance-v0"),
        ("xyz", "use one of life_drift/drift_correction-v0, "),
    ],
)
def test_a_mistyped_id_names_the_closest(wrong, hint):
    with pytest.raises(ValueError, match=f"no environment '{wrong}': .*{hint}"):
        make(wrong)


def test_an_id_without_version_is_the_highest_by_number(own_registry):
    assert registry.resolve("life_drift/drift_correction") == EASY
    for version in (10, 9):
        register(f"life_drift/drift_correction-v{version}", "lifedrift_jax.life_drift:make")
    assert registry.resolve("life_drift/drift_correction") == "life_drift/drift_correction-v10"
    assert registry.resolve(EASY) == EASY


def test_a_registered_id_is_made_by_its_entry_point(own_registry):
    register("mine/energy_balance-v0", "lifedrift_jax.life_drift:make")
    env, params = make("mine/energy_balance-v0")
    assert env == LifeDrift()
    assert params.max_steps == 15
    assert "mine/energy_balance-v0" in registered()


@pytest.mark.parametrize(
    "env_id", ["task-v0", "family/task", "a/b/c-v0", "a b/c-v0", "a/b-v1.0", ""]
)
def test_a_malformed_id_is_refused(own_registry, env_id):
    before = registered()
    with pytest.raises(ValueError, match="use family/task-vN"):
        register(env_id, "module:function")
    assert registered() == before


@pytest.mark.parametrize("entry_point", ["module", "module:", "module:a.b", "a b:c", ":c"])
def test_a_malformed_entry_point_is_refused(own_registry, entry_point):
    before = registered()
    with pytest.raises(ValueError, match="use 'module:function'"):
        register("mine/task-v0", entry_point)
    assert registered() == before


def test_a_taken_id_is_refused_and_keeps_its_entry_point(own_registry):
    with pytest.raises(ValueError, match=f"{EASY}' is registered already"):
        register(EASY, "module:function")
    assert make(EASY)[0] == LifeDrift()


def test_overrides_change_their_field_and_no_other():
    _, default = make(EASY)
    _, params = make(EASY, cascade_threshold=0.9, max_steps=7)
    assert params.cascade_threshold == np.float32(0.9)
    assert params.max_steps == 7
    differ = jax.tree.map(lambda a, b: not np.array_equal(a, b), default, params)
    assert sum(jax.tree.leaves(differ)) == 2


def test_a_horizon_override_ends_the_episode_there():
    env, params = make(EASY, max_steps=7)
    outcome, _ = rollout.episode(episode_key(root_key(0), 0), env, simple.random(), params, 12)
    assert outcome.length == 7
    assert outcome.finished


def test_a_dotted_name_changes_one_number_of_a_nested_field():
    _, default = make(EASY)
    _, params = make(EASY, **{"reward.alignment": 0.5, "reward.low": -0.5})
    assert params.reward.alignment == np.float32(0.5)
    assert params.reward.low == np.float32(-0.5)
    assert params.reward.low.dtype == jnp.float32
    assert params.reward.drift == default.reward.drift


def test_a_nested_field_can_be_replaced_as_a_whole():
    _, default = make(EASY)
    halved = jax.tree.map(lambda x: np.asarray(x) * np.float32(0.5), default.reward)
    _, params = make(EASY, reward=halved)
    assert params.reward.alignment == np.float32(0.2)


def test_an_array_field_takes_a_list():
    _, params = make(EASY, start=[0.1, 0.2, 0.3, 0.4, 0.5])
    assert np.array_equal(params.start, np.float32([0.1, 0.2, 0.3, 0.4, 0.5]))


REFUSED = [
    (
        {"cascade_treshold": 0.9},
        "no parameter 'cascade_treshold': did you mean 'cascade_threshold'",
    ),
    ({"reward.aligment": 0.9}, "no parameter 'reward.aligment': did you mean 'reward.alignment'"),
    ({"rewards.alignment": 0.9}, "did you mean 'reward.alignment'"),
    ({"max_steps.x": 7}, "no parameter 'max_steps.x': did you mean 'max_steps'"),
    ({"qqqq": 1}, "no parameter 'qqqq': legal names: task, max_steps, .*reward.alignment"),
    ({"start": [0.1, 0.2]}, r"start has shape \(2,\): it must be \(5,\)"),
    ({"cascade_threshold": [0.9]}, r"cascade_threshold has shape \(1,\): it must be \(\)"),
    ({"start": [0.1, [0.2]]}, "start is .*rows differ"),
    ({"cascade_threshold": float("nan")}, "cascade_threshold is nan: it must be finite"),
    ({"cascade_threshold": float("inf")}, "cascade_threshold is inf: it must be finite"),
    ({"cascade_threshold": 1e39}, r"cascade_threshold is 1e\+39: it must be finite in float32"),
    ({"reward.high": float("-inf")}, "reward.high is -inf: it must be finite"),
    ({"start": [0.1, 0.2, float("nan"), 0.4, 0.5]}, "start is .*: it must be finite"),
    ({"max_steps": float("nan")}, "max_steps is nan: it must be finite"),
    ({"cascade_threshold": "0.9"}, "cascade_threshold is '0.9': it must be a number"),
    ({"cascade_threshold": None}, "cascade_threshold is None: it must be a number"),
    ({"max_steps": True}, "max_steps is True: it must be a number"),
    ({"max_steps": 7.5}, "max_steps is 7.5: it must be a whole number"),
    ({"max_steps": 2**40}, "max_steps is 1099511627776: it must be a whole number in the range"),
    ({"max_steps": 0}, r"max_steps is 0: it must be in \[1, 1,000,000\]"),
    ({"max_steps": -3}, r"max_steps is -3: it must be in \[1, 1,000,000\]"),
    ({"start": [0.1, 0.2, 1.5, 0.4, 0.5]}, r"start is .*\[0, 1\]"),
    ({"natural_low": [0.5, 0.5, 0.5]}, r"natural_low is .*: it must be at most natural_high"),
    ({"reward": 0.5}, "reward is 0.5: it must be a Reward"),
]


@pytest.mark.parametrize(("overrides", "says"), REFUSED, ids=[str(o) for o, _ in REFUSED])
def test_a_wrong_override_is_refused_by_name(overrides, says):
    with pytest.raises(ValueError, match=says):
        make(EASY, **overrides)


def test_a_nan_inside_a_whole_nested_field_is_named():
    _, default = make(EASY)
    spoilt = jax.tree.map(lambda x: np.float32(np.nan), default.reward)
    with pytest.raises(ValueError, match=r"reward\.alignment is .*nan.*: it must be finite"):
        make(EASY, reward=spoilt)


def test_stacked_params_play_the_three_tasks_in_one_program_bit_for_bit():
    env, policy, key = LifeDrift(), simple.random(), episode_key(root_key(7), 3)
    each = [make(f"life_drift/{task}-v0")[1] for task in TASKS]
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *each)
    play = jax.vmap(lambda params: rollout.episode(key, env, policy, params, 20))
    together = play(stacked)
    assert together[0].length.tolist() == [10, 15, 20]
    for task, params in enumerate(each):
        alone = rollout.episode(key, env, policy, params, 20)
        for a, b in zip(jax.tree.leaves(alone), jax.tree.leaves(together), strict=True):
            assert np.asarray(a).tobytes() == np.asarray(b[task]).tobytes()
