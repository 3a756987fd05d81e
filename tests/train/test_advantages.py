"""Advantages by hand-worked numbers, against a plain loop, and their normalisation."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from train.advantages import following, gae, normalized

REWARDS = np.ones(3, np.float32)
VALUES = np.full(3, 0.5, np.float32)
NO = np.zeros(3, bool)
LAST = np.array([False, False, True])
cut = jax.jit(partial(gae, gamma=0.9, gae_lambda=1.0))

# Ends at step 2, after which the true observation is worth 2. By hand, backwards:
# errors before the end 1 + .9 * .5 - .5 = .95, at it 1 - .5 or 1 + .9 * 2 - .5.
NEXT = np.array([0.5, 0.5, 2.0], np.float32)
TERMINATED = [2.21, 1.4, 0.5]
TRUNCATED = [3.668, 3.02, 2.3]


# Advantages.


@pytest.mark.parametrize(
    ("terminated", "truncated", "expected"),
    [(LAST, NO, TERMINATED), (NO, LAST, TRUNCATED), (LAST, LAST, TERMINATED)],
    ids=["terminated", "truncated", "both"],
)
def test_an_end_of_the_task_is_worth_nothing_and_a_cut_what_the_last_observation_is(
    terminated, truncated, expected
):
    rewards = REWARDS.copy()
    assert np.allclose(cut(rewards, VALUES, NEXT, terminated, truncated), expected)
    assert np.array_equal(rewards, REWARDS)


def test_both_kinds_of_end_in_one_vectorised_call():
    advantages = jax.vmap(cut, (None, None, None, 0, 0))(
        REWARDS, VALUES, NEXT, np.stack([LAST, NO]), np.stack([NO, LAST])
    )
    assert np.allclose(advantages, [TERMINATED, TRUNCATED])


@pytest.mark.parametrize(
    ("terminated", "truncated", "next_value", "expected"),
    [
        # Later errors count 1/4. Error 1 is 0 - 2, or 0 + 6/2 - 2, or 0 + 3/2 - 2.
        (True, False, np.nan, [0.5, -2, 0.875, -0.5]),
        (False, True, 6, [1.25, 1, 0.875, -0.5]),
        (False, False, 3, [0.9296875, -0.28125, 0.875, -0.5]),
    ],
    ids=["terminated", "truncated", "going on"],
)
def test_an_end_in_the_middle_stops_what_flows_back(terminated, truncated, next_value, expected):
    at_1 = np.arange(4) == 1
    rewards, values = np.array([[1, 0, 2, 1], [1, 2, 3, 4]], np.float32)
    next_values = np.array([2, next_value, 4, 5], np.float32)
    half = jnp.float32(0.5)
    advantages = jax.jit(gae)(
        rewards, values, next_values, at_1 & terminated, at_1 & truncated, half, half
    )
    assert np.allclose(advantages, expected)


def test_following_is_the_next_value_or_an_episodes_own_last_one():
    values, final = np.array([[1, 2, 3], [7, 8, np.nan]], np.float32)
    followers = partial(following, values, jnp.float32(4), final)
    assert np.array_equal(followers(np.array([False, False, False])), [2, 3, 4])
    assert np.array_equal(followers(np.array([False, True, False])), [2, 8, 4])
    assert np.array_equal(following(values, jnp.float32(4), values, LAST), [2, 3, 3])


many = jax.jit(jax.vmap(gae, (0, 0, 0, 0, 0, None, None)))


def plain_loop(rewards, values, next_values, terminated, truncated, gamma, gae_lambda):
    """The sum of all later errors of the episode, each discounted from where it is seen."""
    errors = [
        r + (0 if end else gamma * after) - v
        for r, v, after, end in zip(rewards, values, next_values, terminated, strict=True)
    ]
    advantages = []
    for start in range(len(rewards)):
        total, weight = 0.0, 1.0
        for step in range(start, len(rewards)):
            total += weight * errors[step]
            weight *= gamma * gae_lambda
            if terminated[step] or truncated[step]:
                break
        advantages.append(total)
    return advantages


@pytest.mark.parametrize("length", [1, 2, 25])
@pytest.mark.parametrize(("gamma", "gae_lambda"), [(0.99, 0.95), (0, 1), (1, 0), (1, 1)])
def test_random_trajectories_agree_with_a_plain_loop(length, gamma, gae_lambda):
    random = np.random.default_rng(length)
    numbers = random.normal(size=(3, 40, length)).astype(np.float32)
    flags = random.random((2, 40, length)) < 0.15
    batch = many(*numbers, *flags, np.float32(gamma), np.float32(gae_lambda))
    looped = [plain_loop(*row, gamma, gae_lambda) for row in zip(*numbers, *flags, strict=True)]
    assert np.allclose(batch, looped, atol=1e-4)


@pytest.mark.parametrize("kind", ["terminated", "truncated"])
def test_an_episode_knows_nothing_of_the_one_after_it(kind):
    """Two episodes of 6 steps in one trajectory; only the second one's numbers change."""
    random = np.random.default_rng(0)
    rewards, values, final = random.normal(size=(3, 12)).astype(np.float32)
    ends = np.arange(12) % 6 == 5
    flags = ends & (kind == "terminated"), ends & (kind == "truncated")

    @jax.jit
    def advantages(rewards, values, final):
        next_values = following(values, jnp.float32(1), final, flags[1])
        return gae(rewards, values, next_values, *flags, 0.99, 0.95)

    before = advantages(rewards, values, final)
    second = np.arange(12) >= 6
    after = advantages(*(np.where(second, 9 * x + 5, x) for x in (rewards, values, final)))
    assert np.array_equal(before[:6], after[:6])
    assert np.all(before[6:] != after[6:])
    # What its own last observation is worth counts where it was cut, and only there.
    moved = advantages(rewards, values, final + 1)[:6] - before[:6]
    weight = 0.99 if kind == "truncated" else 0
    assert np.allclose(moved, weight * (0.99 * 0.95) ** np.arange(5, -1, -1), atol=1e-5)


# Normalisation.


whole = jax.jit(normalized)


@jax.jit
def in_shards(advantages):
    """`normalized`, the batch split over a mapped axis of 4."""
    split = jax.vmap(partial(normalized, axis_name="shard"), axis_name="shard")
    return split(advantages.reshape(4, -1)).reshape(-1)


def test_normalized_by_hand():
    expected = np.array([-1.5, -0.5, 0.5, 1.5]) / np.sqrt(1.25)
    assert np.allclose(whole(np.array([1, 2, 3, 4], np.float32)), expected)


@pytest.mark.parametrize("centre", [0.0, -3.0, 30.0])
@pytest.mark.parametrize("how", [whole, in_shards])
def test_normalized_has_mean_0_and_deviation_1(centre, how):
    advantages = np.random.default_rng(0).normal(centre, 2, 1024).astype(np.float32)
    result = np.asarray(how(advantages), np.float64)
    assert abs(result.mean()) < 1e-4
    assert abs(result.std() - 1) < 1e-4
    assert np.allclose(result, whole(advantages), atol=1e-5)


@pytest.mark.parametrize("value", [0.1, 1e6, -3.0, 0.0])
@pytest.mark.parametrize("how", [whole, in_shards])
def test_a_constant_batch_gives_exactly_0_and_a_finite_gradient(value, how):
    advantages = jnp.full(1000, value, jnp.float32)
    assert np.array_equal(how(advantages), np.zeros(1000))
    _, pull_back = jax.vjp(how, advantages)
    assert np.all(np.isfinite(pull_back(jnp.arange(1000, dtype=jnp.float32))))


@pytest.mark.parametrize("value", [0.1, 0.0])
def test_a_batch_of_one_gives_0_and_a_finite_gradient(value):
    advantages = jnp.float32([value])
    assert np.array_equal(whole(advantages), [0])
    assert np.array_equal(jax.grad(lambda x: whole(x)[0])(advantages), [0])


def test_differences_at_the_rounding_of_the_values_count_as_none_and_larger_ones_do_not():
    one = np.float32(1)
    rounding = np.array([one, np.nextafter(one, np.float32(2))] * 8)
    assert np.array_equal(whole(rounding), np.zeros(16))
    assert np.allclose(whole(np.array([1, 1.001] * 8, np.float32)), [-1, 1] * 8, atol=1e-3)


def test_shards_that_are_each_constant_are_normalised_together():
    advantages = np.repeat(np.array([1, 2, 3, 4], np.float32), 5)
    assert np.allclose(in_shards(advantages), whole(advantages), atol=1e-6)
    assert np.all(in_shards(advantages) != 0)
