"""Evaluations: held-out episodes, finished ones only, frozen statistics."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from probes import FAST, SMALL, Match, match, same

from lifedrift_jax import root_key
from lifedrift_jax.rollout import Outcome
from lifedrift_jax.sweep import outcomes
from train import evaluation, loop, networks, ppo, runs

pytestmark = pytest.mark.relaxed

CONFIG = ppo.filled_in(replace(SMALL, normalize_observations=True, eval_episodes=32), match())


@pytest.fixture(scope="module")
def trained():
    return loop.train(root_key(0), Match(), match(), CONFIG, FAST)


def outcome(finished):
    return Outcome(
        score=jnp.array([0.5, 1.0, 0.0]),
        episode_return=jnp.array([1.0, 3.0, 100.0]),
        length=jnp.array([5, 5, 2]),
        finished=jnp.array(finished),
        events=(jnp.array([True, False, True]),),
    )


def test_means_are_of_the_finished_episodes():
    seen = evaluation.summary(outcome([True, True, False]), ("cascade",))
    assert float(seen.episode_return.mean) == 2 and float(seen.score.mean) == 0.75
    assert float(seen.length.mean) == 5 and float(seen.events["cascade"].mean) == 0.5
    assert int(seen.finished) == 2
    # Standard deviation of 1 and 3 is sqrt(2); its error of two is 1.
    np.testing.assert_allclose(seen.episode_return.half_width, 1.96, rtol=1e-6)


def test_no_finished_episode_gives_zeros_and_a_count():
    seen = evaluation.summary(outcome([False] * 3), ("cascade",))
    assert int(seen.finished) == 0
    assert all(float(x) == 0 for x in jax.tree.leaves(seen))


def test_evaluations_play_the_sweeps_episodes_of_the_held_out_seed(trained):
    for mode, seen in (
        ("greedy", trained.metrics.greedy),
        ("sampled", trained.metrics.sampled),
    ):
        policy = runs.trained_policy(Match(), CONFIG, trained.state, mode)
        played = outcomes(Match(), policy, match(), CONFIG.eval_seed, 32)
        np.testing.assert_allclose(played.score.mean(), seen.score.mean[-1], rtol=1e-6)
        np.testing.assert_allclose(
            played.episode_return.mean(), seen.episode_return.mean[-1], rtol=1e-6
        )


def test_a_restored_agent_plays_the_same_to_the_bit(trained, tmp_path):
    loop.train(root_key(0), Match(), match(), CONFIG, FAST, checkpoints=tmp_path)
    again = loop.train(root_key(0), Match(), match(), CONFIG, FAST, checkpoints=tmp_path)
    played = [
        outcomes(Match(), runs.trained_policy(Match(), CONFIG, x.state, "sampled"), match(), 7, 100)
        for x in (trained, again)
    ]
    assert same(*played)


def test_an_evaluation_changes_nothing_of_the_state(trained):
    after, _ = ppo.segment(trained.state, jnp.int32(0), Match(), match(), CONFIG, FAST.checked())
    assert same(after, trained.state)
    assert float(trained.state.normalizer.count) == CONFIG.total_steps  # training steps alone


def test_training_never_plays_a_held_out_episode(trained):
    root = root_key(CONFIG.eval_seed)
    held_out = jax.vmap(lambda i: jax.random.fold_in(root, i))(jnp.arange(1000))
    words = {tuple(x) for x in np.asarray(jax.random.key_data(held_out)).tolist()}
    for seed in (0, CONFIG.eval_seed):
        state = ppo.init(root_key(seed), Match(), match(), CONFIG, FAST.checked())
        keys = np.asarray(jax.random.key_data(state.env_keys)).tolist()
        assert not words & {tuple(x) for x in keys}


def test_the_greedy_policy_takes_the_most_probable_action():
    network = networks.network(Match(), (8,))
    weights = networks.initial(network, root_key(0), jnp.zeros(2))
    policy = evaluation.policy(network, weights, None, "greedy")
    mask = jnp.array([True, True])
    actions = [policy.act(root_key(1), jnp.array([b, 1.0]), mask, False)[0] for b in (0.0, 1.0)]
    logits = network.apply(weights, jnp.array([[0.0, 1.0], [1.0, 1.0]]))[0]
    assert [int(a) for a in actions] == np.argmax(logits, -1).tolist()
