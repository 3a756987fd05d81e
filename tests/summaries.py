"""Summaries of sweeps that nobody played, for tests of what is made of them."""

from lifedrift_jax.summary import Estimate, Summary


def estimate_of(mean, count=1000):
    """An estimate of this mean with an interval of +-0.006."""
    return Estimate(count, mean, 0.1, 0.003, (mean - 0.006, mean + 0.006), 0, 1, {}, 0.001)


def plain_summary(description, estimate, count=1000, **changes):
    """A summary in which score, return and step reward are `estimate`."""
    plain = {"mean_length": 1.0, "events": {}, "actions": {}, "invalid_actions": None}
    plain |= {"steps": {}, "histograms": {}}
    means = dict.fromkeys(("score", "episode_return", "step_reward"), estimate)
    counts = {"episodes": count, "finished": count, "unfinished": 0}
    return Summary(description=description, **means, **counts, **plain | changes)
