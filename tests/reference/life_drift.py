"""Life Drift restated in plain Python from its rules in words: floats, lists, histories.

Slow and plain on purpose, and independent of lifedrift_jax: the compiled env must agree.
"""

import copy

VARIABLES = ["alignment", "drift", "energy", "fatigue", "focus"]
PHASES = ["morning", "late_morning", "afternoon", "late_afternoon", "evening"]

RULES = {
    # action -> variable -> bounds of the draw
    "effects": {
        "suggest_task": {
            "alignment": (0.08, 0.18),
            "energy": (-0.12, -0.05),
            "fatigue": (0.05, 0.12),
            "focus": (0.02, 0.08),
        },
        "prioritize_goal": {
            "alignment": (0.10, 0.20),
            "drift": (-0.15, -0.08),
            "energy": (-0.15, -0.08),
            "fatigue": (0.06, 0.10),
            "focus": (0.05, 0.10),
        },
        "insert_break": {
            "alignment": (-0.04, -0.01),
            "drift": (0.02, 0.06),
            "energy": (0.10, 0.20),
            "focus": (0.05, 0.10),
        },
        "reschedule_task": {
            "alignment": (0.05, 0.10),
            "drift": (-0.08, -0.04),
            "energy": (-0.05, -0.02),
            "focus": (0.03, 0.07),
        },
        "reduce_difficulty": {
            "alignment": (0.03, 0.08),
            "drift": (-0.05, -0.02),
            "energy": (0.02, 0.05),
            "fatigue": (-0.07, -0.03),
        },
        "do_nothing": {
            "alignment": (-0.07, -0.03),
            "drift": (0.05, 0.10),
            "energy": (0.01, 0.03),
            "fatigue": (-0.03, -0.01),
            "focus": (-0.06, -0.03),
        },
    },
    # action -> (variable, the variable whose draw it follows, factor)
    "followers": {
        "suggest_task": ("drift", "alignment", -0.9),
        "insert_break": ("fatigue", "energy", -1.1),
    },
    "natural": {"fatigue": (0.01, 0.03), "drift": (0.01, 0.02), "energy": (-0.03, -0.01)},
    "phases": {
        "morning": {"focus": 0.02},
        "late_morning": {},
        "afternoon": {},
        "late_afternoon": {"fatigue": 0.02, "focus": -0.02},
        "evening": {"fatigue": 0.02, "focus": -0.02},
    },
    "threshold": 0.85,
    "cascade": {"focus": -0.05, "alignment": -0.03, "drift": 0.03},
    "energy_window": (0.4, 0.7),
}

TASKS = {
    "drift_correction": {"max_steps": 10, "start": [0.2, 0.8, 0.7, 0.3, 0.3]},
    "energy_balance": {"max_steps": 15, "start": [0.8, 0.2, 0.3, 0.8, 0.6]},
    "long_term_stability": {"max_steps": 20, "start": [0.5, 0.5, 0.5, 0.5, 0.5]},
}


def rules(task):
    """A copy of the rules and the task's numbers, free to be changed."""
    return copy.deepcopy(RULES | TASKS[task] | {"task": task})


class Episode:
    """An episode in progress, with its whole history.

    `states` has one row more than `rewards`, `phases` and `cascades`; row 0 is the start.
    """

    def __init__(self, rules):
        self.rules = rules
        self.states = [list(rules["start"])]
        self.rewards, self.phases, self.cascades = [], [], []

    @property
    def finished(self):
        return len(self.rewards) >= self.rules["max_steps"]

    def step(self, action, draws):
        """Take an action, given by its name (or anything else: invalid) and eight draws."""
        if self.finished:
            return
        before = dict(zip(VARIABLES, self.states[-1], strict=True))
        after, cascade = dict(before), False
        phase = PHASES[min((len(self.rewards) + 1) * 5 // self.rules["max_steps"], 4)]
        paid = 0.0
        if action in self.rules["effects"]:
            self._act(after, action, draws[:5])
            self._live_on(after, draws[5:])
            add(after, self.rules["phases"][phase])
            cascade = after["fatigue"] > self.rules["threshold"]
            if cascade:
                add(after, self.rules["cascade"])
            after = {name: min(max(value, 0.0), 1.0) for name, value in after.items()}
            paid = reward(before, after, self.rules["energy_window"])
        self.states.append([after[name] for name in VARIABLES])
        self.rewards.append(paid)
        self.phases.append(phase)
        self.cascades.append(cascade)

    def _act(self, values, action, draws):
        drawn = {}
        for name, u in zip(VARIABLES, draws, strict=True):
            if name in self.rules["effects"][action]:
                drawn[name] = scaled(u, self.rules["effects"][action][name])
        if action in self.rules["followers"]:
            name, source, factor = self.rules["followers"][action]
            drawn[name] = factor * drawn[source]
        add(values, drawn)

    def _live_on(self, values, draws):
        bounds = self.rules["natural"].items()
        add(values, {name: scaled(u, b) for u, (name, b) in zip(draws, bounds, strict=True)})

    def grade(self):
        """The grade before its clamp to [0.01, 0.99], from the history."""
        columns = dict(zip(VARIABLES, zip(*self.states, strict=True), strict=True))
        return GRADERS[self.rules["task"]](columns, self.rewards)


def reward(before, after, energy_window):
    """Reward of a step between two clamped states."""
    total = 0.4 * (after["alignment"] - before["alignment"])
    total -= 0.3 * (after["drift"] - before["drift"])
    total -= 0.2 * max(0.0, after["fatigue"] - before["fatigue"])
    total += 0.1 if energy_window[0] <= after["energy"] <= energy_window[1] else -0.05
    if after["alignment"] > 0.7 and after["drift"] < 0.3:
        total += 0.1
    if after["fatigue"] < 0.4 and after["energy"] > 0.5:
        total += 0.05
    if after["fatigue"] > 0.9:
        total -= 0.15
    if after["drift"] > 0.8:
        total -= 0.1
    return min(max(total, -1.0), 1.0)


def scaled(u, bounds):
    return bounds[0] + (bounds[1] - bounds[0]) * u


def add(values, changes):
    for name, change in changes.items():
        values[name] += change


def mean(values):
    return sum(values) / len(values)


def variance(values):
    return mean([(value - mean(values)) ** 2 for value in values])


def grade_drift_correction(columns, rewards):
    final_alignment, final_drift = columns["alignment"][-1], columns["drift"][-1]
    return 0.6 * min(final_alignment / 0.7, 1) + 0.4 * min((1 - final_drift) / 0.7, 1)


def grade_energy_balance(columns, rewards):
    fatigue = columns["fatigue"]
    return 0.4 * mean(columns["alignment"]) + 0.3 * (1 - mean(fatigue)) + 0.3 * (1 - fatigue[-1])


def grade_long_term_stability(columns, rewards):
    return (
        0.3 * (1 - mean(columns["drift"]))
        + 0.25 * max(0, 1 - 4 * variance(columns["energy"]))
        + 0.25 * (1 - max(columns["fatigue"]))
        + 0.2 * min(max((mean(rewards) + 1) / 2, 0), 1)
    )


GRADERS = {
    "drift_correction": grade_drift_correction,
    "energy_balance": grade_energy_balance,
    "long_term_stability": grade_long_term_stability,
}
