"""What `train_jit` promises, on a probe environment."""

from dataclasses import replace
from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from probes import FAST, SMALL, Match, match, same

import lifedrift_jax
from lifedrift_jax import root_key
from lifedrift_jax.wrappers import AutoReset, TimeLimit
from train import Hyper, PPOConfig, losses, networks, ppo

pytestmark = pytest.mark.relaxed  # flax and optax promote dtypes


init = jax.jit(ppo.init, static_argnums=(1, 3))
collect = jax.jit(ppo.collect, static_argnums=(1, 3))


@pytest.fixture(scope="module")
def state():
    return init(root_key(0), Match(), match(), SMALL, FAST.checked())


@pytest.mark.parametrize("weights", [{}, {"reward_weight": 0.0, "grade_weight": 1.0}])
def test_a_probe_is_solved_for_either_objective(weights):
    config = replace(SMALL, num_envs=32, total_updates=40, eval_every=20, eval_episodes=64)
    metrics = ppo.train_jit(root_key(1), Match(), match(), config, replace(FAST, **weights)).metrics
    assert metrics.update.tolist() == [0, 20, 40]
    np.testing.assert_allclose(metrics.greedy.episode_return.mean[-1], 5.0)
    np.testing.assert_allclose(metrics.greedy.score.mean[-1], 1.0)
    assert metrics.sampled.score.mean[-1] > 0.9
    assert metrics.greedy.events["perfect"].mean[-1] == 1
    assert metrics.greedy.finished.tolist() == [64] * 3


def test_illegal_actions_are_never_taken_and_training_stays_finite():
    result = ppo.train_jit(root_key(2), Match(masked=True), match(), SMALL, FAST)
    assert all(np.all(np.isfinite(x)) for x in jax.tree.leaves(result.state.params))
    _, trajectory, _ = collect(result.state, Match(masked=True), match(), SMALL, FAST.checked())
    assert trajectory.mask.shape == (6, 8, 3) and not trajectory.mask[..., 2].any()
    assert set(np.unique(trajectory.action)) <= {0, 1}


def test_a_mask_without_a_legal_action_makes_the_loss_nan():
    class Stuck(Match):
        def action_mask(self, state, params):
            return jnp.zeros(2, bool)

    metrics = ppo.train_jit(root_key(0), Stuck(), match(), SMALL, FAST).metrics
    assert np.isnan(metrics.losses.policy_loss[1:]).all()


def test_every_hyper_parameter_is_traced_once_for_twenty_values(state):
    counted = jax.jit(
        chex.assert_max_traces(lambda h: ppo.update(state, Match(), match(), SMALL, h)[1], n=1)
    )
    values = np.linspace(0.1, 0.9, 20)
    for name in vars(Hyper()):
        for value in (float(values[0]), np.float32(values[1]), np.float64(values[2]), *values[3:]):
            counted(replace(Hyper(), **{name: value}).checked())


def test_a_second_call_with_new_numbers_and_an_equal_env_compiles_nothing():
    train = partial(ppo.train_jit, config=SMALL)
    train(root_key(0), Match(), match(), hyper=FAST)
    before = ppo._train._cache_size()
    train(root_key(1), Match(), match(prize=2.0), hyper=replace(FAST, gamma=np.float32(0.5)))
    assert ppo._train._cache_size() == before


def test_keys_numbers_and_params_can_be_mapped_together():
    config = replace(SMALL, eval_steps=5)
    keys = jnp.stack([root_key(s) for s in range(3)])
    hypers = replace(FAST, learning_rate=jnp.array([0.0, 0.02, 0.02]))
    params = jax.tree.map(lambda x: jnp.stack([x] * 3), match())._replace(
        prize=jnp.array([1.0, 1.0, 0.0])
    )

    def train(key, params, rate):
        return ppo.train_jit(key, Match(), params, config, replace(FAST, learning_rate=rate))

    result = jax.vmap(train)(keys, params, hypers.learning_rate)
    assert result.metrics.update.shape == (3, 4)
    alone = ppo.train_jit(keys[1], Match(), match(), config, FAST)
    chex.assert_trees_all_close(
        jax.tree.map(lambda x: x[1], result.state.params), alone.state.params, atol=1e-4
    )
    first = init(keys[0], Match(), match(), config, FAST.checked())
    assert same(jax.tree.map(lambda x: x[0], result.state.params), first.params)  # rate 0
    assert (result.metrics.greedy.episode_return.mean[2] == 0).all()  # prize 0


def test_traced_params_need_the_number_of_evaluation_steps():
    stacked = jax.tree.map(lambda x: x[None], match())
    with pytest.raises(ValueError, match=r"set PPOConfig\.eval_steps"):
        jax.vmap(lambda p: ppo.train_jit(root_key(0), Match(), p, SMALL, FAST))(stacked)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"key": jax.random.key(0, impl="rbg")}, r"key is .*root_key"),
        ({"key": jax.random.PRNGKey(0)}, r"key is uint32.*root_key"),
        ({"env": AutoReset(Match())}, "resets by itself"),
        ({"hyper": Hyper(gamma=1.5)}, r"gamma is 1\.5: it must be .*\[0, 1\]"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_compiling(change, message):
    given = {"key": root_key(0), "env": Match(), "params": match(), "config": SMALL, "hyper": FAST}
    before = ppo._train._cache_size()
    with pytest.raises((ValueError, TypeError), match=message):
        ppo.train_jit(**given | change)
    assert ppo._train._cache_size() == before


def test_the_ratio_is_one_before_the_first_gradient_step(state):
    _, trajectory, last = collect(state, Match(), match(), SMALL, FAST.checked())
    samples = ppo.to_samples(trajectory, last, None, FAST.checked())
    _, parts = losses.loss(state.params, samples, networks.network(Match(), (8,)), FAST.checked())
    assert parts.approx_kl == 0 and parts.clip_fraction == 0
    np.testing.assert_allclose(parts.policy_loss, -samples.advantage.mean(), rtol=1e-5)


def test_an_update_makes_epochs_times_minibatches_gradient_steps(state):
    after, _ = ppo.update(state, Match(), match(), SMALL, FAST.checked())
    counts = {int(x) for x in jax.tree.leaves(after.optimizer) if x.dtype == jnp.int32}
    assert counts == {SMALL.epochs * SMALL.minibatches}
    assert int(after.update) == 1


def test_an_epoch_uses_every_sample_once(state, monkeypatch):
    seen = []
    real = ppo.gradient_step

    def spy(learner, rows, **rest):
        jax.debug.callback(lambda r: seen.append(np.asarray(r)), rows)
        return real(learner, rows, **rest)

    monkeypatch.setattr(ppo, "gradient_step", spy)
    jax.block_until_ready(ppo.update(state, Match(), match(), SMALL, FAST.checked()))
    jax.effects_barrier()
    assert len(seen) == SMALL.epochs * SMALL.minibatches
    for epoch in range(SMALL.epochs):
        rows = np.concatenate(seen[epoch * SMALL.minibatches : (epoch + 1) * SMALL.minibatches])
        assert sorted(rows.tolist()) == list(range(SMALL.batch_size))
    assert not np.array_equal(seen[0], seen[SMALL.minibatches])  # another order each epoch


def test_episodes_go_on_over_the_borders_of_updates(state):
    # Episodes of 5 steps, updates of 6: the end moves one step earlier each update.
    ends = []
    for _ in range(3):
        state, trajectory, _ = collect(state, Match(), match(), SMALL, FAST.checked())
        ends.append(np.flatnonzero(trajectory.terminated[:, 0]).tolist())
        state = state._replace(update=state.update + 1)
    assert ends == [[4], [3], [2]]


def test_a_cut_episode_is_bootstrapped_from_its_own_last_observation(state):
    env = TimeLimit(Match(), 3)
    first = init(root_key(3), env, match(), SMALL, FAST.checked())
    _, trajectory, _ = collect(first, env, match(), SMALL, FAST.checked())
    assert np.flatnonzero(trajectory.truncated[:, 0]).tolist() == [2, 5]
    assert not trajectory.terminated.any()
    network = networks.network(env, (8,))
    values = {bit: network.apply(first.params, jnp.array([bit, 1.0]))[1] for bit in (0.0, 1.0)}
    final = np.asarray(trajectory.final_value)
    assert (final[~np.asarray(trajectory.truncated)] == 0).all()
    cut = final[np.asarray(trajectory.truncated)]
    near = np.isclose(cut, values[0.0], atol=1e-6) | np.isclose(cut, values[1.0], atol=1e-6)
    assert near.all() and len(set(cut.round(4).tolist())) == 2


def test_the_score_is_paid_only_where_an_episode_ends(state):
    hyper = replace(FAST, reward_weight=0.0, grade_weight=2.0).checked()
    _, trajectory, _ = collect(state, Match(), match(), SMALL, hyper)
    reward, ended = np.asarray(trajectory.reward), np.asarray(trajectory.terminated)
    assert (reward[~ended] == 0).all()
    fifths = reward[ended] * 5 / 2
    np.testing.assert_allclose(fifths, fifths.round(), atol=1e-5)
    assert len(set(fifths.round().tolist())) > 1


def test_a_cut_episode_is_paid_no_score():
    env = TimeLimit(Match(), 3)
    hyper = replace(FAST, reward_weight=0.0, grade_weight=1.0).checked()
    first = init(root_key(3), env, match(), SMALL, hyper)
    _, trajectory, _ = collect(first, env, match(), SMALL, hyper)
    assert trajectory.truncated.any() and not trajectory.reward.any()


def test_an_env_draws_the_same_however_many_stand_beside_it():
    def rollout(num_envs):
        config = replace(SMALL, num_envs=num_envs)
        first = init(root_key(5), Match(), match(), config, FAST.checked())
        return collect(first, Match(), match(), config, FAST.checked())[1]

    few, many = rollout(4), rollout(64)
    assert same(few.features, many.features[:, :4]) and same(few.action, many.action[:, :4])


def test_envs_and_seeds_draw_apart():
    def bits(seed):
        config = replace(SMALL, num_envs=64, num_steps=30)
        first = init(root_key(seed), Match(), match(), config, FAST.checked())
        return np.asarray(collect(first, Match(), match(), config, FAST.checked())[1].features)

    a, b = bits(0)[..., 0], bits(1)[..., 0]
    streams = {tuple(column) for column in np.concatenate([a.T, b.T])}
    assert len(streams) == 128


def test_no_key_is_used_twice():
    with jax.debug_key_reuse(True):
        first = jax.jit(lambda k: ppo.init(k, Match(), match(), SMALL, FAST.checked()))(root_key(0))
        jax.jit(lambda s: ppo.update(s, Match(), match(), SMALL, FAST.checked()))(first)


def test_actions_are_independent_of_the_noise_of_the_step():
    config = replace(SMALL, num_envs=500, num_steps=40, hidden_sizes=())
    first = init(root_key(0), Match(), match(1000), config, FAST.checked())
    zero = jax.tree.map(jnp.zeros_like, first.params)  # a coin, whatever is shown
    _, seen, _ = collect(first._replace(params=zero), Match(), match(1000), config, FAST.checked())
    action, following = np.asarray(seen.action)[:-1], np.asarray(seen.features)[1:, :, 0]
    correlation = np.corrcoef(action.ravel(), following.ravel())[0, 1]
    assert abs(correlation) < 4 / np.sqrt(action.size)


def test_training_keeps_its_dtypes_and_what_it_plays_first_with_64_bits(state):
    with jax.enable_x64(True):
        wide = ppo.train_jit(root_key(0), Match(), match(), SMALL, FAST)
        first = init(root_key(0), Match(), match(), SMALL, FAST.checked())
        _, seen, _ = collect(first, Match(), match(), SMALL, FAST.checked())
    narrow = ppo.train_jit(root_key(0), Match(), match(), SMALL, FAST)
    assert [x.dtype for x in jax.tree.leaves(wide)] == [x.dtype for x in jax.tree.leaves(narrow)]
    assert same(seen, collect(state, Match(), match(), SMALL, FAST.checked())[1])


def test_memory_does_not_grow_with_the_number_of_updates():
    def scratch(updates):
        config = replace(SMALL, total_updates=updates, eval_every=updates // 2)
        given = ppo.checked(root_key(0), Match(), match(), config, FAST)
        compiled = ppo._train.lower(root_key(0), Match(), match(), *given).compile()
        memory = compiled.memory_analysis()
        return memory.temp_size_in_bytes + memory.output_size_in_bytes

    assert scratch(20) == scratch(2000)


def test_rewards_are_credited_over_updates_shorter_than_an_episode():
    # The score alone, at the end of 20 steps, in updates of 5.
    config = replace(SMALL, num_envs=64, num_steps=5, total_updates=150, eval_every=75)
    hyper = Hyper(learning_rate=0.01, gamma=1.0, reward_weight=0.0, grade_weight=1.0)
    metrics = ppo.train_jit(root_key(0), Match(), match(20), config, hyper).metrics
    assert metrics.greedy.score.mean[-1] > 0.9  # a coin scores 0.5


def test_the_presets_fields_exist_for_life_drift():
    env, params = lifedrift_jax.make("life_drift/energy_balance-v0")
    config, hyper = ppo.checked(root_key(0), env, params, PPOConfig(), Hyper())
    assert config.eval_steps == int(params.max_steps)
    assert all(x.dtype == jnp.float32 and x.shape == () for x in jax.tree.leaves(hyper))
