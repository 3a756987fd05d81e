"""The masked categorical distribution by hand-worked numbers, its draws, and the networks."""

import re
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from probes import FAST, SMALL, Match, Pick, match
from scipy import special, stats

from lifedrift_jax import root_key
from train import networks, ppo

# Logits log 1 .. log 6: the probabilities are these numbers over the sum of the legal ones.
LOGITS = np.log(np.arange(1, 7, dtype=np.float32))
ONE, TWO, ALL = (np.isin(np.arange(1, 7), legal) for legal in ([3], [2, 4], [1, 2, 3, 4, 5, 6]))
PROBABILITIES = {
    "one": (ONE, np.array([0, 0, 1, 0, 0, 0])),
    "two": (TWO, np.array([0, 1, 0, 2, 0, 0]) / 3),
    "all": (ALL, np.array([1, 2, 3, 4, 5, 6]) / 21),
}
ENTROPIES = {
    "one": 0.0,
    "two": np.log(3) - 2 / 3 * np.log(2),
    "all": np.log(21) - np.sum(PROBABILITIES["all"][1] * LOGITS),
}
ALARM = 1e-6  # chance at which one statistic of a perfect sampler fails

each_mask = pytest.mark.parametrize("case", PROBABILITIES)


@jax.jit
def distribution(logits, mask):
    log_probs = networks.log_probs(logits, mask)
    return log_probs, networks.entropy(log_probs)


slopes = jax.jit(jax.jacobian(distribution))


@each_mask
def test_probabilities_and_entropy_by_hand(case):
    mask, expected = PROBABILITIES[case]
    log_probs, entropy = distribution(LOGITS, mask)
    assert np.allclose(np.exp(log_probs), expected, rtol=1e-6)
    assert np.all(np.exp(log_probs)[~mask] == 0)
    assert np.isclose(entropy, ENTROPIES[case], rtol=1e-6)


@pytest.mark.parametrize("legal", range(6))
@pytest.mark.parametrize("scale", [0.0, 1.0, 1e4])
def test_the_entropy_of_a_single_legal_action_is_exactly_0(legal, scale):
    log_probs, entropy = distribution(scale * LOGITS, np.arange(6) == legal)
    assert log_probs[legal] == 0
    assert entropy == 0


@each_mask
def test_gradients_by_hand(case):
    """d log p[a] / d logit[b] = [a = b] - p[b];  d H / d logit[b] = -p[b] (log p[b] + H)."""
    mask, p = PROBABILITIES[case]
    of_log_probs, of_entropy = slopes(LOGITS, mask)
    assert np.allclose(of_log_probs, np.where(mask[:, None], np.eye(6) - p, 0), atol=1e-6)
    by_hand = -p * (np.log(np.where(mask, p, 1)) + ENTROPIES[case])
    assert np.allclose(of_entropy, by_hand, atol=1e-6)


@each_mask
@pytest.mark.parametrize("scale", [0.0, 1.0, 50.0, 1e4])
def test_logits_of_any_size_give_right_values_and_finite_gradients(case, scale):
    mask = PROBABILITIES[case][0]
    logits = np.float32(scale) * np.array([-1, 1, 0.5, -1, 1, 0], np.float32)
    expected = np.full(6, -np.inf)
    expected[mask] = special.log_softmax(logits.astype(np.float64)[mask])
    log_probs, entropy = distribution(logits, mask)
    assert np.allclose(log_probs, expected, rtol=1e-6, atol=1e-6)
    assert np.isclose(entropy, special.entr(np.exp(expected)).sum(), rtol=1e-5, atol=1e-6)
    for slope in slopes(logits, mask):
        assert np.all(np.isfinite(slope))
        assert np.all(slope[..., ~mask] == 0)


def test_many_random_rows_agree_with_a_softmax_of_the_legal_logits():
    random = np.random.default_rng(0)
    logits = random.normal(0, 3, (200, 6)).astype(np.float32)
    mask = random.random((200, 6)) < 0.5
    mask[np.arange(200), random.integers(0, 6, 200)] = True
    log_probs = np.asarray(distribution(logits, mask)[0])
    for row, legal, got in zip(logits.astype(np.float64), mask, log_probs, strict=True):
        assert np.allclose(got[legal], special.log_softmax(row[legal]), atol=2e-6)
        assert np.all(np.isneginf(got[~legal]))


def test_a_mask_without_a_legal_action_is_refused():
    mask = np.array([[True, False], [False, False]])
    with pytest.raises(ValueError, match=r"mask is \[\[True, False\], \[False, False\]\]: each"):
        networks.log_probs(jnp.zeros((2, 2)), mask)


def test_in_compiled_code_only_the_row_without_a_legal_action_is_minus_infinite():
    mask = np.stack([ALL, np.zeros(6, bool), TWO])
    log_probs, _ = distribution(np.stack([LOGITS] * 3), mask)
    assert np.all(np.isneginf(log_probs[1]))
    assert np.allclose(np.exp(log_probs[::2]), [PROBABILITIES[c][1] for c in ("all", "two")])


@pytest.mark.parametrize("shape", [(), (4,), (2, 3)])
def test_log_prob_of_picks_each_rows_entry(shape):
    random = np.random.default_rng(0)
    log_probs = random.normal(size=(*shape, 6)).astype(np.float32)
    action = random.integers(0, 6, shape).astype(np.int32)
    picked = np.take_along_axis(log_probs, action[..., None], -1)[..., 0]
    assert np.array_equal(networks.log_prob_of(log_probs, action), picked)
    slope = jax.jit(jax.grad(lambda x: jnp.sum(networks.log_prob_of(x, action))))(log_probs)
    assert np.array_equal(slope, np.eye(6)[action])


def test_an_illegal_action_has_log_probability_minus_infinity():
    assert networks.log_prob_of(distribution(LOGITS, TWO)[0], jnp.int32(0)) == -np.inf


# Draws.


@partial(jax.jit, static_argnums=1)
def draws(log_probs, count):
    """Actions drawn with `count` fixed keys."""
    keys = jax.random.split(jax.random.key(7), count)
    return jax.vmap(networks.sample, (0, None))(keys, log_probs)


@each_mask
def test_frequencies_of_draws_match_the_probabilities(case):
    mask, expected = PROBABILITIES[case]
    counts = np.bincount(draws(distribution(LOGITS, mask)[0], 20_000), minlength=6)
    chance = stats.chisquare(counts[mask], 20_000 * expected[mask]).pvalue if mask.sum() > 1 else 1
    assert counts[mask].sum() == 20_000
    assert chance > ALARM


@pytest.mark.slow
@each_mask
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_illegal_actions_are_never_drawn(case, scale, full_size):
    """Also where the illegal actions' logits are by far the largest."""
    mask = PROBABILITIES[case][0]
    logits = np.where(mask, 0, np.float32(scale))
    actions = draws(distribution(logits, mask)[0], 10**6 if full_size else 20_000)
    assert np.all(mask[actions])


def test_a_draw_is_int32_and_the_same_for_the_same_key():
    log_probs, _ = distribution(LOGITS, ALL)
    once, again = (draws(log_probs, 20_000) for _ in range(2))
    assert once.dtype == np.int32
    assert np.array_equal(once, again)


def test_greedy_takes_the_most_probable_legal_action_the_first_of_equals():
    logits = np.array([[1, 5, 2, 9], [0, 3, 3, 3], [1, 1, 1, 1]], np.float32)
    mask = np.array([[True, True, True, False], [True] * 4, [False, False, True, True]])
    action = networks.greedy(networks.log_probs(logits, mask))
    assert action.dtype == np.int32
    assert np.array_equal(action, [1, 1, 2])


# The networks.


@pytest.mark.parametrize(
    ("shape", "batch_dims", "expected"),
    [((4,), 0, (4,)), ((2, 3), 0, (6,)), ((), 0, (1,)), ((5, 2, 3), 1, (5, 6)), ((5,), 1, (5, 1))],
)
def test_features_flatten_all_but_the_batch(shape, batch_dims, expected):
    obs = jnp.arange(np.prod(shape), dtype=jnp.int32).reshape(shape)
    features = networks.features(obs, batch_dims)
    assert features.dtype == np.float32
    assert features.shape == expected
    assert np.array_equal(features.ravel(), obs.ravel())


@pytest.mark.relaxed
def test_the_network_starts_almost_uniform_with_two_stacks_that_share_nothing():
    network = networks.network(SimpleNamespace(num_actions=6), [16])
    features = np.random.default_rng(0).normal(size=(32, 5)).astype(np.float32)
    params = networks.initial(network, jax.random.key(0), features[0])
    logits, values = network.apply(params, features)
    assert (logits.shape, values.shape) == ((32, 6), (32,))
    assert (logits.dtype, values.dtype) == (np.float32, np.float32)
    assert np.abs(logits).max() < 0.05
    assert values.std() > 0.1
    for output, own in enumerate(("actor", "critic")):
        square = partial(lambda n, p: jnp.sum(network.apply(p, features)[n] ** 2), output)
        slopes = jax.jit(jax.grad(square))(params)
        used = {name for name, leaf in slopes["params"].items() if np.any(leaf["kernel"])}
        assert used == {f"{own}_0", f"{own}_out"}


@pytest.mark.parametrize(("encoder", "shape"), [("flat", (10,)), ("items", (3, 10))])
@pytest.mark.relaxed
def test_first_kernels_are_orthogonal_at_their_scales_and_differ(encoder, shape):
    network = networks.network(SimpleNamespace(num_actions=6), (64, 32), encoder)
    first = jax.jit(partial(networks.initial, network))
    layers = first(jax.random.key(0), jnp.zeros(shape))["params"]
    scales = {"actor_out": 0.01, "critic_out": 1.0}
    for name, layer in layers.items():
        kernel = np.asarray(layer["kernel"]) / scales.get(name, np.sqrt(2))
        gram = kernel.T @ kernel if kernel.shape[0] >= kernel.shape[1] else kernel @ kernel.T
        np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-5)
        assert not np.any(layer["bias"])
    assert not np.allclose(layers["actor_1"]["kernel"], layers["critic_1"]["kernel"])
    expected = jax.eval_shape(network.init, jax.random.key(0), jnp.zeros(shape))["params"]
    assert jax.tree.map(lambda x: (x.shape, x.dtype), layers) == jax.tree.map(
        lambda x: (x.shape, x.dtype), dict(expected)
    )


@pytest.mark.relaxed
def test_first_parameters_of_the_flat_network_stay_as_they_are():
    layers = networks.initial(networks.ActorCritic(6, (8,)), jax.random.key(0), jnp.zeros(10))
    first = {name: layer["kernel"][0, 0] for name, layer in layers["params"].items()}
    recorded = {
        "actor_0": 0.85393709,
        "actor_out": -0.00408469,
        "critic_0": 0.73498154,
        "critic_out": 0.32801270,
    }
    assert first == pytest.approx(recorded, rel=1e-4)


@pytest.mark.relaxed
def test_first_parameters_are_the_same_float32_numbers_with_64_bits():
    network = networks.ActorCritic(6, (8,))
    first = jax.jit(lambda key: networks.initial(network, key, jnp.zeros(10, jnp.float32)))
    expected = first(jax.random.key(0))
    with jax.enable_x64(True):
        wide = first(jax.random.key(0))
    assert {leaf.dtype for leaf in jax.tree.leaves(wide)} == {np.dtype(np.float32)}
    jax.tree.map(np.testing.assert_array_equal, wide, expected)


@pytest.mark.relaxed
def test_first_parameters_have_the_same_bits_in_any_batch_and_no_batched_lapack_call():
    network = networks.ActorCritic(6, (64, 64))
    keys = jax.vmap(lambda i: jax.random.fold_in(jax.random.key(0), i))(jnp.arange(5))
    many = jax.jit(jax.vmap(lambda key: networks.initial(network, key, jnp.zeros(10))))
    # A batch of factorisations can hang on CPU, see networks._orthogonal.
    calls = [x for x in many.lower(keys).as_text().splitlines() if "lapack" in x]
    assert calls and not any("tensor<5x" in call for call in calls)
    one = jax.jit(lambda key: networks.initial(network, key, jnp.zeros(10)))
    stacked = jax.tree.map(lambda *x: np.stack(x), *[one(key) for key in keys])
    jax.tree.map(np.testing.assert_array_equal, stacked, many(keys))


# Networks of items.


def items_network(hidden_sizes):
    """For 5 items of 3 numbers and 4 types: what it does, large parameters, 7 observations."""
    network = networks.network(SimpleNamespace(num_actions=20), hidden_sizes, "items")
    random = np.random.default_rng(0)
    items = random.normal(size=(7, 5, 3)).astype(np.float32)
    shapes = jax.eval_shape(network.init, jax.random.key(0), items)
    params = jax.tree.map(lambda x: random.normal(0, 0.5, x.shape).astype(np.float32), shapes)
    return jax.jit(network.apply), params, items


@pytest.mark.relaxed
@pytest.mark.parametrize("hidden_sizes", [(), (16,), (32, 16)])
def test_permuting_items_permutes_the_logits_of_each_type_and_leaves_the_value(hidden_sizes):
    apply, params, items = items_network(hidden_sizes)
    order = np.array([3, 0, 4, 1, 2])
    logits, values = apply(params, items)
    moved_logits, moved_values = apply(params, items[:, order])
    assert (logits.shape, values.shape) == ((7, 20), (7,))
    by_type = np.asarray(logits).reshape(7, 4, 5)
    assert by_type.std(-1).min() > 0.01 and np.std(values) > 0.1
    expected = by_type[:, :, order].reshape(7, 20)
    np.testing.assert_allclose(moved_logits, expected, rtol=1e-6, atol=2e-6)
    np.testing.assert_allclose(moved_values, values, rtol=1e-6, atol=2e-6)


@pytest.mark.relaxed
def test_the_logit_of_action_type_times_n_plus_item_is_that_of_the_type_in_the_items_row():
    apply, params, items = items_network(())
    layer = params["params"]["actor_out"]
    by_hand = items @ np.asarray(layer["kernel"]) + np.asarray(layer["bias"])
    logits, _ = apply(params, items)
    for kind in range(4):
        for item in range(5):
            np.testing.assert_allclose(
                logits[:, kind * 5 + item], by_hand[:, item, kind], rtol=1e-5, atol=1e-6
            )


@pytest.mark.relaxed
def test_an_item_is_judged_by_the_others_too():
    apply, params, items = items_network((16,))
    logits, values = apply(params, items)
    other = items + (np.arange(5) == 4).astype(np.float32)[:, None]
    moved_logits, moved_values = apply(params, other)
    assert np.abs(moved_logits - logits).reshape(7, 4, 5)[:, :, 0].min() > 1e-4
    assert np.abs(moved_values - values).min() > 1e-4


@pytest.mark.parametrize("shape", [(), (2,), (5, 3, 2)])
def test_items_that_are_no_matrix_are_refused(shape):
    message = f"encoder 'items' needs observations [n, F]: here they are {list(shape)}"
    with pytest.raises(ValueError, match=re.escape(message)):
        networks.features(jnp.zeros((4, *shape)), 1, 2)


def test_features_of_items_keep_their_rows():
    obs = np.arange(24, dtype=np.int32).reshape(2, 4, 3)
    features = networks.features(jnp.asarray(obs), 1, 2)
    assert features.dtype == np.float32
    assert np.array_equal(features, obs)


@pytest.mark.relaxed
def test_a_number_of_actions_that_items_do_not_divide_is_refused():
    network = networks.network(SimpleNamespace(num_actions=6), (8,), "items")
    with pytest.raises(ValueError, match=r"here are 6 actions for \[4, 3\]"):
        networks.initial(network, jax.random.key(0), jnp.zeros((4, 3)))


@pytest.mark.relaxed
def test_an_env_without_items_is_refused():
    config = replace(SMALL, encoder="items")
    with pytest.raises(ValueError, match=r"observations \[n, F\]: here they are \[2\]"):
        ppo.train_jit(root_key(0), Match(), match(), config, FAST)


@pytest.mark.relaxed
def test_the_network_of_items_learns_to_pick_one():
    """Random play scores 0.1."""
    config = replace(
        SMALL,
        encoder="items",
        num_envs=32,
        total_updates=40,
        eval_every=20,
        eval_episodes=64,
        normalize_observations=True,
    )
    result = ppo.train_jit(root_key(0), Pick(), match(), config, replace(FAST, gamma=0.0))
    assert result.metrics.greedy.score.mean[0] < 0.5
    assert result.metrics.greedy.score.mean[-1] > 0.95
    # Columns are scaled, not entries: sizes are uniform in (0, 1) in every row.
    count, mean, square = result.state.normalizer
    assert count == config.total_steps * 5
    np.testing.assert_allclose(mean, [0.5, 0.5], atol=0.02)
    np.testing.assert_allclose(square / count, [1 / 12, 1 / 4], atol=0.01)
