"""PPO's loss, its gradient in parts, and the optimiser, by hand-worked numbers."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from optax import tree_utils

from train import Hyper, PPOConfig, losses, networks
from train.losses import Samples

HYPER = Hyper(clip=0.2, value=0.5, entropy=0.1).checked()


class Linear:
    """Stands in for the network: logits and value are linear in the features."""

    def apply(self, params, features):
        return features @ params["logits"], features @ params["value"]


def first(params, samples, hyper):
    """The loss of `samples` as if they had just been drawn with `params`."""
    logits, _ = Linear().apply(params, samples.features)
    log_probs = networks.log_probs(logits, samples.mask)
    log_prob = jax.lax.stop_gradient(networks.log_prob_of(log_probs, samples.action))
    return losses.loss(params, samples._replace(log_prob=log_prob), Linear(), hyper)


# Each gives ((loss, its parts), its gradient).
later = partial(losses.loss, network=Linear())
first, later = (jax.jit(jax.value_and_grad(f, has_aux=True)) for f in (first, later))


def table(ratios, advantages, targets=(0, 0, 0), values=(0, 0, 0)):
    """(params, samples) of 3 rows, each with its own two logits (both 0) and value.

    Action 0 has probability 1/2 now and had 1/2 over `ratios` when it was taken.
    """
    log_prob, *columns = np.array([ratios, advantages, targets, values], np.float32)
    advantage, target, value = columns
    params = {"logits": np.zeros((3, 2), np.float32), "value": value}
    features, mask = np.eye(3, dtype=np.float32), np.ones((3, 2), bool)
    log_prob = np.log(0.5 / log_prob)
    return params, Samples(features, mask, np.zeros(3, np.int32), log_prob, advantage, target)


def batch(rows):
    """(params, samples) of `rows` random rows: 4 features, 6 actions, some of them legal."""
    random = np.random.default_rng(rows)
    normal = random.standard_normal
    params = {"logits": normal((4, 6), np.float32), "value": normal(4, np.float32)}
    mask = random.random((rows, 6)) < 0.5
    action = random.integers(0, 6, rows).astype(np.int32)
    mask[np.arange(rows), action] = True
    log_prob, advantage, target = normal((3, rows), np.float32)
    features = normal((rows, 4), np.float32)
    return params, Samples(features, mask, action, log_prob / 4 - 1, advantage, target)


# The loss.


@pytest.mark.parametrize("sign", [1, -1])
def test_before_the_first_step_the_ratio_is_1_and_the_loss_minus_the_mean_advantage(sign):
    params, samples = batch(64)
    samples = samples._replace(advantage=sign * np.abs(samples.advantage))
    (_, parts), _ = first(params, samples, HYPER)
    assert np.isclose(parts.policy_loss, -np.mean(samples.advantage), rtol=1e-6)
    assert parts.approx_kl == 0
    assert parts.clip_fraction == 0


@pytest.mark.parametrize(
    ("advantage", "surrogates", "pushes"),
    [
        (1, [0.5, 1.0, 1.2], [True, True, False]),  # min(r, clip(r)): no gain beyond 1.2
        (-2, [-1.6, -2.0, -3.0], [False, True, True]),  # -2 max(r, clip(r)): none below .8
    ],
)
def test_the_surrogate_is_clipped_on_the_side_of_the_gain(advantage, surrogates, pushes):
    ratios = [0.5, 1.0, 1.5]
    (_, parts), slopes = later(*table(ratios, [advantage] * 3), hyper=HYPER)
    assert np.isclose(parts.policy_loss, -np.mean(surrogates))
    assert np.isclose(parts.clip_fraction, 2 / 3)
    # d ratio / d logit of action 0 is ratio * (1 - 1/2); the entropy is at its top: slope 0.
    unclipped = -np.array(ratios) / 2 * advantage / 3
    assert np.allclose(slopes["logits"][:, 0], np.where(pushes, unclipped, 0), atol=1e-6)


def test_all_parts_by_hand():
    (total, parts), slopes = later(
        *table([0.5, 1, 2], [3, 0, 0], targets=[0, 4, 1], values=[1, 2, 1]), hyper=HYPER
    )
    assert np.isclose(parts.policy_loss, -1.5 / 3)
    assert np.isclose(parts.value_loss, 0.5 * (1 + 4 + 0) / 3)
    assert np.isclose(parts.entropy, np.log(2))
    # Mean of ratio - 1 - log ratio; the logarithms of 1/2 and 2 cancel.
    assert np.isclose(parts.approx_kl, (-0.5 + 0 + 1) / 3, atol=1e-6)
    assert np.isclose(parts.clip_fraction, 2 / 3)
    assert np.isclose(total, -0.5 + 0.5 * (2.5 / 3) - 0.1 * np.log(2))
    assert np.allclose(slopes["value"], 0.5 * np.array([1, -2, 0]) / 3)


@pytest.mark.parametrize("scale", [1, 1e4])
def test_masks_and_large_logits_leave_the_loss_and_its_gradient_finite(scale):
    params, samples = batch(64)
    params["logits"] *= np.float32(scale)
    assert all(np.all(np.isfinite(x)) for x in jax.tree.leaves(first(params, samples, HYPER)))


def test_a_row_without_a_legal_action_shows_as_nan_in_compiled_code():
    params, samples = batch(64)
    samples.mask[2] = False
    (total, _), _ = first(params, samples, HYPER)
    assert np.isnan(total)


# The gradient in parts.


@pytest.mark.parametrize(
    ("rows", "parts"),
    [(1, 1), (8, 1), (9, 3), (16, 2), (24, 3), (25, 5), (30, 5), (64, 8), (31, 1), (46, 1)],
)
def test_parts_are_few_equal_and_small_or_the_batch_stays_whole(rows, parts, monkeypatch):
    monkeypatch.setattr(losses, "CACHED_ROWS", 8)
    assert losses.equal_parts(rows) == parts


@pytest.mark.parametrize(("rows", "parts"), [(24, 3), (30, 5), (31, 1)])
def test_the_gradient_in_parts_is_that_of_the_whole_batch(rows, parts, monkeypatch):
    monkeypatch.setattr(losses, "CACHED_ROWS", 8)
    params, samples = batch(rows)
    step = jax.jit(partial(losses.gradient, network=Linear(), hyper=HYPER))
    assert ("while" in step.lower(params, samples).as_text()) is (parts > 1)
    (_, measures), slopes = later(params, samples, hyper=HYPER)
    expected = jax.tree.leaves((slopes, measures))
    for got, whole in zip(jax.tree.leaves(step(params, samples)), expected, strict=True):
        assert np.allclose(got, whole, rtol=1e-4, atol=1e-6)


# The schedule.


def rates(config, **numbers):
    """Learning rates of all gradient steps of a run."""
    rate = partial(losses.learning_rate, config=config, hyper=Hyper(**numbers).checked())
    return np.asarray(jax.vmap(rate)(jnp.arange(config.gradient_steps, dtype=jnp.int32)))


@pytest.mark.parametrize("total_updates", [19, 1])
def test_the_learning_rate_falls_by_the_same_amount_each_gradient_step(total_updates):
    """4 envs of 128 steps, 10,000 steps in all at most, 32 minibatches, 10 epochs."""
    config = PPOConfig(4, 128, 32, 10, total_updates=total_updates, eval_every=1)
    steps = 320 * total_updates
    rate = rates(config, learning_rate=0.1, learning_rate_decay=1.0)
    assert rate.shape == (steps,)
    assert rate[0] == np.float32(0.1)
    assert np.isclose(rate[-1], 0.1 / steps, rtol=1e-2)
    assert np.all(rate > 0)
    assert np.allclose(np.diff(rate), -0.1 / steps, atol=3e-8)
    assert np.all(np.diff(rate) < 0)


def test_without_decay_the_rate_stays_and_half_a_decay_leaves_half():
    config = PPOConfig(total_updates=1, eval_every=1)
    assert np.all(rates(config, learning_rate=0.1) == np.float32(0.1))
    half = rates(config, learning_rate=0.1, learning_rate_decay=0.5)
    assert np.allclose(half, 0.1 * (1 - 0.5 * np.arange(16) / 16))


# The optimiser: optax is no strict code.

CONFIG = PPOConfig(minibatches=2, epochs=2, total_updates=2, eval_every=1)
WEIGHTS = {"a": jnp.array([1.0, 1.0]), "b": jnp.array([[1.0]])}


@partial(jax.jit, static_argnames="steps")
def stepped(gradient, hyper, steps=1):
    """Weights before and after each of `steps` steps along one gradient; the last state."""
    optimizer = losses.optimizer(CONFIG, hyper)
    path, state = [WEIGHTS], optimizer.init(WEIGHTS)
    for _ in range(steps):
        changes, state = optimizer.update(gradient, state)
        path.append(optax.apply_updates(path[-1], changes))
    return path, state


@pytest.mark.relaxed
@pytest.mark.parametrize(
    ("gradient", "clipped"),
    [
        ([3.0, 0.0, -4.0], [0.3, 0.0, -0.4]),  # norm 5; elementwise it were [.5, 0, -.5]
        ([30.0, 0.0, 40.0], [0.3, 0.0, 0.4]),
        ([0.3, 0.0, -0.2], [0.3, 0.0, -0.2]),  # norm .36 is below .5
        ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
    ],
)
def test_a_long_gradient_is_scaled_as_a_whole_to_the_largest_norm(gradient, clipped):
    tree = {"a": jnp.array(gradient[:2]), "b": jnp.array([gradient[2:]])}
    _, state = stepped(tree, Hyper(max_grad_norm=0.5).checked())
    # After one step Adam's first moment is a tenth of the gradient that it was given.
    assert np.allclose(tree_utils.tree_get(state, "mu"), 0.1 * np.array(clipped), atol=1e-7)


@pytest.mark.relaxed
def test_steps_follow_the_schedule_one_count_a_step_from_the_learning_rate_itself():
    """Along one gradient each step of Adam is as long as its rate."""
    gradient = {"a": jnp.array([0.3, -0.3]), "b": jnp.array([[0.2]])}
    hyper = Hyper(learning_rate=0.01, learning_rate_decay=1.0).checked()
    path, state = stepped(gradient, hyper, steps=8)
    sizes = -np.diff([np.concatenate([w["a"], w["b"][0]]) for w in path], axis=0)
    expected = 0.01 * (1 - np.arange(8) / 8)[:, None] * [1, -1, 1]
    assert np.allclose(sizes, expected, rtol=1e-3, atol=1e-6)
    counts = [count for _, count in tree_utils.tree_get_all_with_path(state, "count")]
    assert counts == [8, 8]


@pytest.mark.relaxed
def test_twenty_values_of_the_optimisers_numbers_are_one_trace_and_map_in_one_program():
    gradient, traces = {"a": jnp.array([3.0, -1.0]), "b": jnp.array([[2.0]])}, []

    @jax.jit
    def weight(rate, norm):
        traces.append(rate)
        hyper = Hyper(learning_rate=rate, max_grad_norm=norm).checked()
        return stepped(gradient, hyper)[0][1]["a"][0]

    rates = np.linspace(0.001, 0.02, 20, dtype=np.float32)
    each = [weight(*numbers) for numbers in zip(rates, 50 * rates, strict=True)]
    assert len(traces) == 1
    assert np.allclose(jax.vmap(weight)(rates, 50 * rates), each, rtol=1e-6)
    assert np.all(np.diff(each) < 0)
