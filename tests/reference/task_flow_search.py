"""Exact search in TaskFlow, in plain Python on the restated rules: small instances only.

Every action and every outcome of an execution is tried, to the end of the episode. Nothing
else may be left to chance: priorities that drift, spikes and hurried deadlines are refused.
"""

from copy import copy
from types import SimpleNamespace

from reference.task_flow import ACTION_TYPES, SLOTS

STILL = {"drift": [1.0] * SLOTS, "hurry": [1.0] * SLOTS, "spike": [1.0] * SLOTS}
CASES = {"absent": (0.0, 1.0), "failed": (1.0, 0.0), "completed": (1.0, 1.0)}


class Search:
    """Values of states under the best policy for the grade, each worked out once."""

    def __init__(self, rules):
        if rules.hurry_chance or rules.spike_chance:
            raise ValueError("deadlines and uncertainties must be left alone")
        self.values = {}

    def value(self, episode):
        """The expected grade at the end of `episode` under the best policy."""
        if episode.over:
            return episode.grade()
        key = _key(episode)
        if key not in self.values:
            self.values[key] = max(self.values_of_actions(episode).values())
        return self.values[key]

    def values_of_actions(self, episode):
        """Legal action -> expected grade of the best play after it."""
        legal = (a for a in range(len(ACTION_TYPES) * SLOTS) if episode.legal(a))
        return {action: self._value_of(episode, action) for action in legal}

    def _value_of(self, episode, action):
        expected = 0.0
        for case, chance in _chances(episode, action).items():
            if chance > 0:
                after = _copied(episode)
                absence, failure = CASES[case]
                after.step(action, SimpleNamespace(absence=absence, failure=failure, **STILL))
                expected += chance * self.value(after)
        return expected


def _copied(episode):
    """As `deepcopy`, of what a step changes alone: that is most of the time of a search."""
    after = copy(episode)
    after.slots = [copy(item) if item.status != "empty" else item for item in episode.slots]
    for record in ("actions", "outcomes", "rewards"):
        setattr(after, record, list(getattr(episode, record)))
    return after


def _chances(episode, action):
    """Case -> chance; only a pending item's execution has more than one."""
    item, rules = episode.slots[action % SLOTS], episode.rules
    if ACTION_TYPES[action // SLOTS] != "execute" or item.status != "pending":
        return {"completed": 1.0}
    domain = rules.domains[item.domain]
    failed = min(rules.failure_scale * item.uncertainty**2 * domain.failure, 1.0)
    there = 1 - domain.absence
    return {
        "absent": domain.absence,
        "failed": there * failed,
        "completed": there * (1 - failed),
    }


def _key(episode):
    """What the future depends on; rewards and priorities do not enter the grade."""
    slots = tuple((x.status, x.deadline, round(x.uncertainty, 5)) for x in episode.slots)
    left = (round(x, 4) for x in (episode.energy, episode.budget, episode.health))
    return (slots, *left, episode.steps)
