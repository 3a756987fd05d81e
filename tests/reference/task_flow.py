"""TaskFlow restated in plain Python from its rules in words: floats, lists, one item at a time.

Slow and plain on purpose, and independent of lifedrift_jax: the compiled env must agree.
`rules` is a namespace of plain numbers with the names of `Params`; `rules.domains` is a list
of such namespaces, one a domain. `noise` is a namespace of the draws of a step.
"""

from dataclasses import dataclass

SLOTS = 12
ACTION_TYPES = ["execute", "defer", "delegate", "optimize"]
STATUSES = ["empty", "pending", "held", "late", "delegated", "completed", "failed"]
OUTCOMES = [
    "none",
    "invalid",
    "completed",
    "failed",
    "absent",
    "too_late",
    "deferred",
    "delegated",
    "closed",
    "optimized",
]


@dataclass
class Item:
    """What is in a slot. An empty slot is an item of zeros."""

    status: str
    domain: int
    priority: float
    deadline: int
    uncertainty: float
    value: float
    energy_cost: float
    budget_cost: float
    optimized: int = 0


class Episode:
    """An episode in progress, with the record of its actions, outcomes and rewards."""

    def __init__(self, rules, slots):
        self.rules, self.slots = rules, slots
        self.energy, self.budget, self.health = rules.energy, rules.budget, 1.0
        self.actions, self.outcomes, self.rewards = [], [], []

    @property
    def steps(self):
        return len(self.outcomes)

    @property
    def over(self):
        return self.steps >= self.rules.max_steps or not self._having("pending", "held", "late")

    def legal(self, action):
        in_range = 0 <= action < len(ACTION_TYPES) * SLOTS
        if self.over or not in_range:
            return in_range
        kind, item = ACTION_TYPES[action // SLOTS], self.slots[action % SLOTS]
        if kind == "execute":
            return item.status in ("pending", "late") and self._affordable(item, 1.0)
        if kind == "defer":
            return item.status == "pending" and self.rules.domains[item.domain].deferrable > 0
        if kind == "delegate":
            return item.status in ("pending", "late")
        return item.status == "pending" and self._affordable(item, self.rules.optimize_cost)

    def step(self, action, noise):
        """Take an action, legal or not, with the draws of the step; give its reward."""
        if self.over:
            return 0.0
        energy_before, held_before = self.energy, self._having("held")
        reward, outcome = 0.0, "invalid"
        if self.legal(action):
            kind, item = ACTION_TYPES[action // SLOTS], self.slots[action % SLOTS]
            reward, outcome = getattr(self, f"_{kind}")(item, noise)
        self._use_resources(energy_before)
        for slot, item in enumerate(self.slots):
            if item.status in ("pending", "held"):
                self._change(item, slot, noise)
        self.health = max(self.health, 0.0)
        self._return_held(held_before)
        self.actions.append(action)
        self.outcomes.append(outcome)
        self.rewards.append(reward)
        return reward

    # The four actions: (reward, outcome).

    def _execute(self, item, noise):
        rules, domain, late = self.rules, self.rules.domains[item.domain], item.status == "late"
        if not late and noise.absence < domain.absence:
            return 0.0, "absent"
        self._spend(item, 1.0)
        low_energy = self.energy < rules.overload_share * rules.energy
        if low_energy or self.budget < rules.overload_share * rules.budget:
            self.health -= rules.overload_health
        if late:
            item.status = "failed"
            return 0.0, "too_late"
        if noise.failure < rules.failure_scale * item.uncertainty**2 * domain.failure:
            item.status = "failed"
            self.health -= rules.failure_health
            return rules.failure_share * full_reward(item), "failed"
        item.status = "completed"
        return full_reward(item), "completed"

    def _defer(self, item, noise):
        item.status = "held"
        item.deadline += self.rules.defer_extension
        return -self.rules.defer_penalty * item.priority, "deferred"

    def _delegate(self, item, noise):
        self.health -= self.rules.delegate_health
        if item.status == "late":
            item.status = "failed"
            return 0.0, "closed"
        item.status = "delegated"
        return self.rules.delegate_share * full_reward(item), "delegated"

    def _optimize(self, item, noise):
        self._spend(item, self.rules.optimize_cost)
        item.uncertainty *= self.rules.optimize_factor
        item.optimized += 1
        return self.rules.optimize_reward, "optimized"

    # The world's part.

    def _use_resources(self, energy_before):
        rules = self.rules
        if self.energy >= energy_before:
            self.energy = min(self.energy + rules.recovery * rules.energy, rules.energy)
        self.budget = max(self.budget - rules.upkeep * rules.budget, 0.0)

    def _change(self, item, slot, noise):
        rules, volatility = self.rules, self.rules.domains[item.domain].volatility
        up = noise.drift[slot] >= 0.5
        size = 2 * noise.drift[slot] - (1 if up else 0)
        low, high = rules.drift
        change = volatility * (low + (high - low) * size)
        drifted = item.priority * (1 + change if up else 1 - change)
        item.priority = min(max(drifted, min(rules.priority_low, item.priority)), 1.0)

        if noise.spike[slot] < rules.spike_chance * volatility:
            way = max(rules.spike_top - item.uncertainty, 0.0)
            item.uncertainty += way * noise.spike_size[slot]

        hurried = noise.hurry[slot] < rules.hurry_chance
        item.deadline = max(item.deadline - (2 if hurried else 1), 0)
        if item.deadline == 0:
            item.status = "late"
            self.health -= rules.failure_health

    def _return_held(self, held_before):
        for item in held_before:
            if item.status == "held" and self._affordable(item, 1.0):
                item.status = "pending"
        if not self._having("pending"):
            for item in self._having("held"):
                item.status = "pending"

    def _affordable(self, item, share):
        energy, budget = share * item.energy_cost, share * item.budget_cost
        return energy <= self.energy and budget <= self.budget

    def _spend(self, item, share):
        self.energy -= share * item.energy_cost
        self.budget -= share * item.budget_cost

    def _having(self, *statuses):
        return [item for item in self.slots if item.status in statuses]

    def grade(self):
        """The grade as if the episode ended now, from what has become of the items."""
        counts = (len(self._having(name)) for name in ("completed", "delegated"))
        return grade(self.rules, *counts, self.steps, self.energy, self.budget, self.health)


def full_reward(item):
    return item.value * item.priority


def grade_of_record(rules, outcomes, energy, budget, health):
    """The grade from the outcomes of the steps taken, and what is left of the resources."""
    completed, delegated = outcomes.count("completed"), outcomes.count("delegated")
    return grade(rules, completed, delegated, len(outcomes), energy, budget, health)


def grade(rules, completed, delegated, steps, energy, budget, health):
    w1, w2, w3, w4 = rules.grade_weights
    s1, s2, s3 = rules.resource_shares
    failed, time = rules.items - completed - delegated, 1 - steps / rules.max_steps
    resources = s1 * time + s2 * energy / rules.energy + s3 * budget / rules.budget
    total = w1 * completed / rules.items + w2 * resources + w3 * health + w4 * time
    total -= rules.failed_penalty * failed / rules.items
    total -= rules.collapse_penalty if health < rules.collapse_health else 0.0
    return min(max(total, 0.0), 1.0)
