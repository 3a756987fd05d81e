"""LifeStack restated in plain Python from its rules in words: dicts of live values, sets of names.

Slow and plain on purpose, and independent of lifedrift_jax: the compiled env must agree. A task
is any object with the attributes of the Task schema; so are its routes, milestones and events.
`draws` has a uniform in [0, 1) for each event, in list order; only those of step -1 use theirs.
"""

import copy
import operator
from typing import NamedTuple


class Action(NamedTuple):
    """An action, of kind "route", "inspect", "wait" or "rollback"; its str is its public name."""

    kind: str
    target: str = ""  # the id of the route, or the key to inspect
    type: str = ""  # the action type used on the route

    def __str__(self):
        return ":".join(filter(None, self[1:] if self.kind == "route" else self))


WAIT, ROLLBACK = Action("wait"), Action("rollback")


def same(one, other):
    """Whether two values are one value: 1 and 1.0 are, 1 and True are not."""
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def known_keys(task):
    """The key `missed_deadline` and those of the dicts, consequences and mutations, each once."""
    dicts = [{"missed_deadline": False}, task.hidden_state, task.mutable_world, task.visible_world]
    dicts += [route.consequences for route in task.viable_routes]
    dicts += [event.world_mutation for event in task.event_schedule]
    dicts += [event.hidden_state_mutation for event in task.event_schedule]
    return list(dict.fromkeys(key for keys in dicts for key in keys))


def find(items, name):
    return next(item for item in items if item.id == name)


class World:
    """What is so between two calls. An absent key does not stand in `values`."""

    def __init__(self, task, hidden):
        self.task = task
        self.values = {"missed_deadline": False}
        for initial in (task.visible_world, task.mutable_world, task.hidden_state, hidden):
            self.values.update(initial)
        self.closed, self.completed = set(), set()
        self.used = {route.id: set() for route in task.viable_routes}
        self.reached, self.inspected, self.fired = set(), set(), set()
        self.step_count, self.spent, self.paid = 0, 0.0, 0.0

    def holds(self, key, value, op="eq"):
        if key not in self.values:
            return op == "ne"
        if op in ("eq", "ne"):
            return same(self.values[key], value) == (op == "eq")
        return getattr(operator, op)(self.values[key], value)

    @property
    def success(self):
        return all(self.holds(**condition) for condition in self.task.success_conditions)

    @property
    def failure(self):
        failed = any(self.holds(**condition) for condition in self.task.failure_conditions)
        return failed and not self.success

    @property
    def finished(self):
        return self.success or self.failure or self.step_count >= self.task.horizon

    def call(self, action, draws):
        """One call with a legal action, or with None for an illegal one; gives the outcome."""
        self._run_events(draws)
        outcome = self._act(action)
        if action is not None:
            for milestone in self.task.milestones:
                if self.holds(milestone.condition_key, milestone.condition_value):
                    self._reach(milestone)
        self.step_count += 1
        deadline = self.task.constraints.get("deadline_step", float("inf"))
        if not self.success and self.step_count >= deadline:
            self.values["missed_deadline"] = True
        return outcome

    def _run_events(self, draws):
        events = list(enumerate(self.task.event_schedule))
        firing = [position for position, event in events if event.step == self.step_count]
        for position, event in events:
            by_chance = event.step == -1 and position not in self.fired
            if by_chance and draws[position] < event.probability:
                firing.append(position)
        for position in firing:
            event = self.task.event_schedule[position]
            self.values.update(event.world_mutation | event.hidden_state_mutation)
            self.closed.update(event.closes_routes)
        self.fired.update(firing)

    def _act(self, action):
        if action is None:
            return "invalid"
        if action.kind == "route":
            return self._use(find(self.task.viable_routes, action.target), action.type)
        if action.kind == "inspect":
            self.inspected.add(action.target)
            return "inspected"
        return "waited" if action == WAIT else "rolled_back"

    def _use(self, route, action_type):
        if route.id in self.closed:  # by an event of this call, or it would not be legal
            return "closed"
        unmet = [key for key, value in route.preconditions.items() if not self.holds(key, value)]
        hidden = set(self.task.hidden_state) - set(self.task.visible_world)
        if (hidden - self.inspected) & set(unmet):  # a blind attempt burns the route
            self.closed.add(route.id)
            return "unknown"
        if unmet:
            return "precondition"
        completes = self.used[route.id] | {action_type} == set(route.required_action_types)
        cost = (getattr(route, "cost", None) or {}).get("money", 0.0)
        if completes and self.spent + cost > self.task.constraints.get("budget_max", float("inf")):
            return "budget"
        self.used[route.id].add(action_type)
        if not completes:
            return "progressed"
        self.completed.add(route.id)
        self.values.update(route.consequences)
        self.closed.update(route.closes_routes)
        for name in route.milestones_unlocked:
            self._reach(find(self.task.milestones, name))
        self.paid += route.final_reward
        self.spent += cost
        return "completed"

    def _reach(self, milestone):
        if milestone.id not in self.reached:
            self.reached.add(milestone.id)
            self.paid += milestone.reward


class Episode:
    """An episode in progress; the attributes of its world read as its own.

    `hidden` has the values drawn for the keys of `task.hidden_prior`, {key: value}.
    """

    def __init__(self, task, hidden=None):
        self.task, self.world = task, World(task, hidden or {})
        self.idle = None  # the world had the last action been a wait, while it can be undone
        self.rollback_made, self.outcome = False, "started"

    def __getattr__(self, name):
        if name == "world":  # not there yet in a copy in the making
            raise AttributeError(name)
        return getattr(self.world, name)

    @property
    def can_roll_back(self):
        return self.idle is not None

    def shown(self):
        """The live values of the keys in view, {key: value}; None for an absent one."""
        return {key: self.values.get(key) for key in self.inspected.union(self.task.visible_world)}

    def legal(self):
        """The actions that are legal in the next call; in a finished episode, all there are."""
        routes = self.task.viable_routes
        actions = [Action("route", r.id, name) for r in routes for name in r.required_action_types]
        actions += [Action("inspect", key) for key in known_keys(self.task)] + [WAIT, ROLLBACK]
        return [a for a in dict.fromkeys(actions) if self.finished or self._is_legal(a)]

    def _is_legal(self, action):
        if action.kind == "route":
            over = action.target in self.closed | self.completed
            return not over and action.type not in self.used[action.target]
        if action.kind == "inspect":
            return action.target not in self.inspected.union(self.task.visible_world)
        return action == WAIT or self.can_roll_back

    def step(self, action, draws):
        """Take an action; gives the reward. One that is not legal (None, say) does nothing."""
        if self.finished:
            return 0.0
        action, paid = action if action in self.legal() else None, self.paid
        before = copy.deepcopy(self.world, {id(self.task): self.task})
        if action == ROLLBACK:
            self.world, self.rollback_made = self.idle, True
        self.outcome = self.world.call(action, draws)
        self.idle = None
        if action is not None and action.kind in ("route", "wait") and not self.rollback_made:
            before.call(WAIT, draws)
            self.idle = before
        return self.paid - paid
