"""The training benchmark: its statistics by hand, its contestants at tiny sizes."""

import json
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lifedrift_jax
from benchmarks import learners, time_to_target, train_time, trainers
from benchmarks.learners import Learner
from benchmarks.time_to_target import Finish
from benchmarks.trainers import Contestant
from lifedrift_jax import rollout
from lifedrift_jax.baselines.simple import constant
from train import Hyper, PPOConfig, ppo
from train.config import HELD_OUT_SEED

pytestmark = pytest.mark.relaxed
TINY = PPOConfig(num_envs=4, num_steps=8, hidden_sizes=(8,), total_updates=3, eval_every=3)


def test_contestants_run_in_turn_and_the_first_round_does_not_count():
    ran = []
    group = [Contestant(name, 10, 1.5, lambda seed, n=name: ran.append((n, seed))) for name in "ab"]
    rows = train_time.race(group, runs=2)
    assert ran == [(name, seed) for seed in range(3) for name in "ab"]
    assert [row["name"] for row in rows] == ["a", "b"]
    for row in rows:
        assert len(row["seconds"]) == 2
        assert row["steps_per_second"] == pytest.approx(20 / sum(row["seconds"]))
        assert row["compile_seconds"] == 1.5


def test_speed_ratio_is_the_median_of_the_rounds_ratios():
    row = {"seconds": [1.0, 2.0, 8.0], "steps_per_run": 10}
    other = {"seconds": [6.0, 2.0, 2.0], "steps_per_run": 5}
    assert train_time.speed_ratio(row, other) == 2.0  # of 12, 2 and 0.5
    assert train_time.speed_ratio(other, row) == 0.5


@pytest.mark.parametrize(
    ("cap", "ends"),
    [
        (1000, [(10, 0.5, True), (10, 0.5, True), (30, 0.9, True)]),
        (20, [(10, 0.5, True), (10, 0.5, True), (20, 0.4, False)]),
    ],
)
def test_a_target_is_reached_at_the_first_score_of_at_least_it_before_the_cap(cap, ends):
    scores = [0.0, 0.5, 0.4, 0.9, 0.1]
    learner = Learner("l", 10, 1.0, lambda seed: 0, lambda state: state + 1, scores.__getitem__)
    finishes = time_to_target.run(learner, 3, [0.2, 0.5, 0.8], cap)
    assert [(f.steps, f.score, f.reached) for f in finishes] == ends
    assert [(f.seed, f.target) for f in finishes] == [(3, 0.2), (3, 0.5), (3, 0.8)]
    assert 0 < finishes[0].seconds == finishes[1].seconds < finishes[2].seconds


@pytest.mark.parametrize(
    ("reached", "lower_bound"),
    [([True, True, False], False), ([True, False, False], True), ([True, False], True)],
)
def test_a_median_is_a_lower_bound_when_the_cap_stopped_the_median_run(reached, lower_bound):
    finishes = [Finish(i, 0.9, r, 2.0 + i, 10 * i, 0.5) for i, r in enumerate(reached)]
    learner = Learner("l", 10, 1.0, lambda seed: 0, lambda state: state, lambda state: 0.0)
    row = time_to_target.summary(learner, finishes)
    assert row["training"] == 2.0 + (len(reached) - 1) / 2
    assert row["with_compile"] == row["training"] + 1.0
    assert row["reached"] == sum(reached)
    assert row["lower_bound"] is lower_bound


@pytest.mark.parametrize(
    ("ours_bound", "theirs_bound", "ratio", "sign", "met"),
    [
        (False, False, 4.0, "=", True),
        (False, False, 2.0, "=", False),
        (False, True, 4.0, ">=", True),
        (False, True, 2.0, ">=", None),
        (True, False, 4.0, "<=", None),
        (True, False, 2.0, "<=", False),
        (True, True, 4.0, "?", None),
    ],
)
def test_a_bar_is_decided_only_by_what_the_bounds_allow(ours_bound, theirs_bound, ratio, sign, met):
    ours = {"name": "ours", "target": 0.9, "training": 1.5, "lower_bound": ours_bound}
    theirs = {**ours, "name": "theirs", "training": 1.5 * ratio, "lower_bound": theirs_bound}
    rows = [{**row, "with_compile": row["training"] + 1.0} for row in (ours, theirs)]
    comparison, with_compile = time_to_target.times_faster(rows)
    assert with_compile["ratio"] == (1.5 * ratio + 1) / 2.5
    assert (comparison["ratio"], comparison["sign"]) == (ratio, sign)
    assert time_to_target.met(comparison, 3.0) is met


@pytest.mark.parametrize(("steps", "updates"), [(1, 1), (512, 1), (513, 2), (1024, 2)])
def test_steps_are_rounded_up_to_whole_updates(steps, updates):
    config = trainers.common_config(4, steps)
    assert (config.batch_size, config.total_updates) == (512, updates)


def test_the_score_is_the_mean_return_of_the_most_probable_action():
    env, params = lifedrift_jax.make(trainers.ENV_ID)
    action = 2
    mean = learners.greedy_return(lambda state, obs: state * obs.mean())
    root = lifedrift_jax.root_key(HELD_OUT_SEED)
    keys = jax.vmap(lambda i: lifedrift_jax.episode_key(root, i))(
        jnp.arange(learners.EPISODES, dtype=jnp.uint32)
    )
    play = jax.vmap(lambda key: rollout.episode(key, env, constant(action), params)[0])
    expected = play(keys).episode_return.mean()
    logits = jax.nn.one_hot(action, env.num_actions)
    np.testing.assert_allclose(mean(logits), expected, rtol=1e-6)


@pytest.mark.parametrize("part", ["speed", "target"])
def test_parts_against_rejax_are_refused_without_it(part, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(train_time, "find_spec", lambda name: None)
    with pytest.raises(SystemExit) as stopped:
        train_time.main(["--parts", "agents", part, "--out", str(tmp_path / "out")])
    assert stopped.value.code == 2
    assert f"--parts has {part}, against rejax: pip install rejax==0.1.3" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_part_of_stable_baselines3_is_skipped_without_it(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(train_time, "find_spec", lambda name: None)
    train_time.main(["--parts", "sb3", "--out", str(tmp_path)])
    assert "sb3 skipped: pip install stable-baselines3" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", ["--runs", "--envs", "--agents", "--cap"])
@pytest.mark.parametrize("value", ["0", "-3", "1.5"])
def test_a_number_below_one_is_refused(option, value, capsys):
    with pytest.raises(SystemExit):
        train_time.arguments(["--parts", "agents", f"{option}={value}"])
    assert f"argument {option}: {value} is no integer of at least 1" in capsys.readouterr().err


@pytest.mark.slow
def test_our_learner_trains_in_pieces_as_train_jit_does():
    learner = learners.ours("l", TINY, Hyper(), steps=TINY.batch_size + 1)
    assert learner.steps == 2 * TINY.batch_size and learner.compile_seconds > 0
    state = learner.advance(learner.start(5))
    assert np.isfinite(learner.score(state))

    env, params = lifedrift_jax.make(trainers.ENV_ID)
    config = replace(TINY, total_updates=2, eval_every=2, eval_episodes=1)
    whole = ppo.train_jit(lifedrift_jax.root_key(5), env, params, config, Hyper()).state
    close = partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-6)
    jax.tree.map(close, state.params, whole.params)


@pytest.mark.slow
def test_the_part_of_many_agents_writes_positive_figures(monkeypatch, tmp_path, full_size):
    monkeypatch.setattr(train_time, "preset", lambda env_id: (TINY, Hyper()))
    if not full_size:  # three compilations of a whole training
        monkeypatch.setattr(trainers, "many", _pretending)
    size = ["--agents", "2", "--agent-updates", "1", "--runs", "1", "--out", str(tmp_path)]
    train_time.main(["--parts", "agents", *size])
    report = json.loads((tmp_path / "train_time_agents.json").read_text())
    assert {"command", "commit", "cpu", "cores", "device", "versions", "env", "part"} <= set(report)
    assert report["steps_per_agent"] == TINY.batch_size
    assert [row["name"] for row in report["results"]] == ["one by one", "vmap", "lax.map"]
    for row in report["results"]:
        assert row["steps_per_run"] == 2 * TINY.batch_size
        assert row["seconds_per_agent"] == pytest.approx(row["seconds"][0] / 2)
        assert min(row["compile_seconds"], row["times_as_fast"], *row["seconds"]) > 0


def _pretending(config: PPOConfig, hyper: Hyper, agents: int) -> tuple[Contestant, ...]:
    """The line-up of `trainers.many`, without training."""
    names = ("one by one", "vmap", "lax.map")
    steps = agents * config.total_steps
    return tuple(Contestant(name, steps, 1.0, lambda seed: None) for name in names)
