"""Many agents: grids, chunks, memory, and how results depend on them."""

import jax
import numpy as np
import pytest
from probes import FAST, SMALL, Match, match, same

import lifedrift_jax
from lifedrift_jax import root_key
from train import Hyper, PPOConfig, memory, metrics, ppo, programs, sweep

pytestmark = pytest.mark.relaxed

AGENTS = sweep.grid(FAST, range(2), {"lr": [0.02, 0.01, 0.0]})


def run(agents=AGENTS, **options):
    plan = sweep.plan(Match(), match(), SMALL, agents, **options)
    return plan, sweep.run(Match(), match(), SMALL, plan)


def test_a_grid_is_every_seed_with_every_setting():
    agents = sweep.grid(Hyper(), [7, 8], {"lr": [0.1, 0.2], "gamma": [0.5]})
    assert [(a.seed, a.swept) for a in agents] == [
        (seed, {"learning_rate": rate, "gamma": 0.5}) for rate in (0.1, 0.2) for seed in (7, 8)
    ]
    assert [a.hyper.learning_rate for a in agents] == [0.1, 0.1, 0.2, 0.2]
    assert list(sweep.by_setting(agents).values()) == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("swept", "message"),
    [
        ({"lrr": [1]}, "hyper-parameter 'lrr'.*learning_rate"),
        ({"lr": []}, "lr is swept over no value"),
    ],
)
def test_what_cannot_be_swept_is_refused(swept, message):
    with pytest.raises(ValueError, match=message):
        sweep.grid(Hyper(), [0], swept)


@pytest.mark.parametrize(
    ("asked", "size", "chunks"), [(None, 6, 1), (4, 3, 2), (5, 3, 2), (1, 1, 6), (100, 6, 1)]
)
def test_chunks_are_equal(asked, size, chunks):
    plan = sweep.plan(Match(), match(), SMALL, AGENTS, chunk_size=asked)
    assert (plan.chunk_size, len(plan.chunks)) == (size, chunks)
    assert [agent for chunk in plan.chunks for agent in chunk] == AGENTS


def test_chunks_fit_the_budget_and_say_so():
    one = memory.agent_bytes(Match(), match(), ppo.filled_in(SMALL, match()))
    plan = sweep.plan(Match(), match(), SMALL, AGENTS, budget=int(2.5 * one))
    assert plan.chunk_size == 2
    assert "6 agents" in str(plan) and "3 chunks of up to 2" in str(plan)
    with pytest.raises(ValueError, match="use fewer envs or steps, or a larger budget"):
        sweep.plan(Match(), match(), SMALL, AGENTS, budget=one - 1)


@pytest.mark.slow
@pytest.mark.parametrize("envs", [64, 1024])
def test_the_estimate_of_memory_is_near_what_is_compiled(envs, full_size):
    if envs == 64 and not full_size:
        pytest.skip("one size stands for both: each compiles for long")
    env, params = lifedrift_jax.make("life_drift/energy_balance-v0")
    config = ppo.filled_in(PPOConfig(num_envs=envs, num_steps=20, eval_episodes=64), params)
    count = 4
    keys = jax.vmap(lambda i: jax.random.fold_in(root_key(0), i))(np.arange(count))
    hypers = programs.stacked([Hyper()] * count)
    devices = tuple(jax.local_devices()[:1])
    options = {"env": env, "config": config, "devices": devices, "exact": False}
    states = jax.eval_shape(programs.many(keys, env, params, config, hypers, devices).start)
    lowered = programs._many_segment.lower(states, np.int32(1), params, hypers, **options)
    used = lowered.compile().memory_analysis()
    actual = used.temp_size_in_bytes + used.argument_size_in_bytes + used.output_size_in_bytes
    assert 0.5 < memory.agent_bytes(env, params, config) / (actual / count) < 2


def test_exact_agents_do_not_depend_on_the_chunk():
    _, whole = run(exact=True)
    plan, parts = run(exact=True, chunk_size=4)
    assert plan.chunk_size == 3
    assert same(whole, parts)  # and to runs alone, see test_programs


def test_agents_side_by_side_begin_the_same_in_any_chunk_and_repeat():
    _, whole = run()
    _, parts = run(chunk_size=4)
    assert same(whole.state.env_keys, parts.state.env_keys)
    assert same(whole.state.key, parts.state.key)
    rate_zero = [4, 5]  # untrained: parameters and all episodes are those of the start
    pick = lambda tree: jax.tree.map(lambda x: x[np.array(rate_zero)], tree)  # noqa: E731
    assert same(pick(whole.state.params), pick(parts.state.params))
    assert same(pick(whole.state.env_state), pick(parts.state.env_state))
    assert same(run()[1], whole)


@pytest.mark.slow
def test_trained_agents_have_one_distribution_in_chunks_of_any_size(full_size):
    seeds = 66 if full_size else 12
    agents = sweep.grid(FAST, range(seeds), {})
    scores = [  # chunks as in the test above, which has compiled them
        run(agents, chunk_size=size)[1].metrics.sampled.score.mean[:, -1]
        for size in (len(AGENTS), len(AGENTS) // 2)
    ]
    error = np.sqrt(sum(x.var(ddof=1) for x in scores) / seeds)
    assert abs(scores[0].mean() - scores[1].mean()) <= 4 * error + 1e-6


def test_a_killed_sweep_goes_on_and_restores(tmp_path):
    plan = sweep.plan(Match(), match(), SMALL, AGENTS, chunk_size=3)

    def stop(done, count, row):
        if done == 3 and row.update[0] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep.run(Match(), match(), SMALL, plan, out=tmp_path, report=stop)
    with pytest.raises(ValueError, match="resume the run first"):
        sweep.restore(Match(), match(), SMALL, plan, tmp_path)
    result = sweep.run(Match(), match(), SMALL, plan, out=tmp_path)
    assert same(result, sweep.run(Match(), match(), SMALL, plan))
    assert same(sweep.restore(Match(), match(), SMALL, plan, tmp_path), result)


@pytest.mark.parametrize("size", [1, 3])
def test_an_agent_that_diverges_does_not_end_the_sweep(size):
    agents = sweep.grid(FAST, [0], {"reward_weight": [1, 3e38, 2]})
    _, result = run(agents, chunk_size=size)
    lost = ~np.isfinite(result.metrics.losses.value_loss[:, -1])
    assert lost.tolist() == [False, True, False]


def test_tables_hold_a_row_a_run_and_a_row_an_evaluation():
    agents = sweep.grid(FAST, [3], {"lr": [0.02, 0.01]})
    _, result = run(agents, chunk_size=1)
    config = ppo.filled_in(SMALL, match())
    rows = sweep.runs_table(result, config, agents)
    assert rows["seed"].tolist() == [3, 3] and rows["learning_rate"].tolist() == [0.02, 0.01]
    assert rows["steps"].tolist() == [SMALL.total_steps] * 2
    table = sweep.table(result, config, agents)
    assert {len(column) for column in table.values()} == {2 * 4}
    assert table["steps"].tolist() == [0, 96, 192, 288] * 2
    assert table["agent"].tolist() == [0] * 4 + [1] * 4
    np.testing.assert_array_equal(
        table["greedy_score_mean"].reshape(2, 4), result.metrics.greedy.score.mean
    )


def test_interquartile_means_by_hand():
    spread = metrics.interquartile_mean(np.array([0.0, 1, 2, 3, 4, 5, 6, 100]))
    assert spread.center == 3.5  # of 2, 3, 4, 5
    assert 1 <= spread.low < 3.5 < spread.high <= 53
    assert metrics.interquartile_mean(np.array([2.0])) == (2, 2, 2)
    assert metrics.interquartile_mean(np.array([2.0, np.nan])).center == 2
    assert np.isnan(metrics.interquartile_mean(np.array([np.nan])).center)
