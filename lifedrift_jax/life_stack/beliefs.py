"""Best play of a compiled task without hindsight, and what it is worth.

See `search` for the graph of states that this searches.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from lifedrift_jax.life_stack import search
from lifedrift_jax.life_stack.search import (
    ILLEGAL,
    MAX_STATES,
    SUCCESS_WEIGHT,
    UNEXPLORED,
    Graph,
)
from lifedrift_jax.life_stack.types import Capacity, Params

Belief = tuple[tuple[int, float], ...]  # (index in its layer, weight) of each possible state
TIE = 1e-9  # values this close are equal


class Plan(NamedTuple):
    """What to do after each course of observations. Node 0 stands before the first of them.

    Attributes:
        rows: [P, C] uint32, a state that looks as what is seen at each node.
        action: [P] int32, -1 at node 0.
        children: [P, B] int32, the nodes that may follow; -1 = padding.
    """

    rows: np.ndarray
    action: np.ndarray
    children: np.ndarray


class Solution(NamedTuple):
    """What a task is worth.

    Attributes:
        exact: False if states were left out: the figures are then bounds.
        expected_return: of the best play found.
        upper_return: no play has more in expectation; equal to expected_return if exact.
        success: chance of success of the best play found.
        upper_success: no play has more; 0 only if success is impossible.
        without_inspection: expected return of the best play that never inspects.
        with_hindsight: expected return of play that knows all hidden keys.
        num_states: states visited.
        plan: the best play found.
    """

    exact: bool
    expected_return: float
    upper_return: float
    success: float
    upper_success: float
    without_inspection: float
    with_hindsight: float
    num_states: int
    plan: Plan


def solve(params: Params, capacity: Capacity, max_states: int = MAX_STATES) -> Solution:
    """Search for the best play.

    Args:
        params: of one compiled task, concrete.
        capacity: its sizes.
        max_states: states, and beliefs, that may be visited.

    Returns:
        The solution; if more would have to be visited, bounds.
    """
    graph = search.explore(params, capacity, max_states)
    rewards = np.concatenate([params.routes.reward, params.milestones.reward])
    best, worst = (float(rewards[keep].sum()) for keep in (rewards > 0, rewards < 0))
    upper = _hindsight(graph, 1.0, SUCCESS_WEIGHT, leaf=best + SUCCESS_WEIGHT)
    lower = _hindsight(graph, 1.0, SUCCESS_WEIGHT, leaf=worst)
    chance = _hindsight(graph, 0.0, 1.0, leaf=1.0)
    with _recursion(10 * len(graph.layers)):
        play = _Play(graph, lower, upper, worst, max_states)
        blind = _Play(graph, lower, upper, worst, max_states, inspecting=False)
        plan, earned, success = play.plan()
        without_inspection = blind.plan()[1]
    with_hindsight = float(graph.weights @ _best(upper[0]))
    exact = graph.exact and not play.cut
    return Solution(
        exact=exact,
        expected_return=earned,
        upper_return=earned if exact else with_hindsight,
        success=success,
        upper_success=float(graph.weights @ _best(chance[0])),
        without_inspection=without_inspection,
        with_hindsight=with_hindsight - SUCCESS_WEIGHT * success,
        num_states=graph.num_states,
        plan=plan,
    )


def _hindsight(graph: Graph, returns: float, successes: float, leaf: float) -> list[np.ndarray]:
    """[n, A] value of each action in each state of each layer, all keys known.

    Args:
        graph: the states.
        returns, successes: weights of the return and of the chance of success.
        leaf: value of what was left unexplored.
    """
    values: list[np.ndarray] = []
    for layer in reversed(graph.layers):
        following = _best(values[-1]) if values else np.zeros(0)
        ends = np.zeros(3)  # found under the negative numbers that stand in place of a child
        ends[UNEXPLORED] = leaf
        after = np.concatenate([following, ends])[layer.child]
        value = (returns * layer.reward + successes * layer.success + after) @ graph.chances
        values.append(np.where(layer.child[:, :, 0] == ILLEGAL, -np.inf, value))
    return values[::-1]


def _best(values: np.ndarray) -> np.ndarray:
    """[n] best of [n, A]; 0 where no action is left, for then nothing can happen any more."""
    best = np.max(values, axis=1)
    return np.where(best == -np.inf, 0.0, best)


@contextmanager
def _recursion(depth: int) -> Iterator[None]:
    """Room for so many calls more."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit + depth)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


class _Play:
    """Best play from beliefs, remembered."""

    def __init__(
        self,
        graph: Graph,
        lower: list[np.ndarray],
        upper: list[np.ndarray],
        worst: float,
        max_beliefs: int,
        inspecting: bool = True,
    ) -> None:
        self.graph, self.lower, self.upper, self.worst = graph, lower, upper, worst
        self.left, self.cut = max_beliefs, False
        self.columns = np.flatnonzero(inspecting | ~graph.inspects)
        self.known: list[dict[Belief, tuple[float, int]]] = [{} for _ in graph.layers]

    def best(self, step: int, belief: Belief) -> tuple[float, int]:
        """(value, column of the best action, -1 if none is left) of a belief."""
        if step >= len(self.known):
            return 0.0, -1
        known = self.known[step].get(belief)
        if known is None:
            known = self._search(step, belief) if len(belief) > 1 else self._single(step, belief)
            self.known[step][belief] = known
        return known

    def _single(self, step: int, belief: Belief) -> tuple[float, int]:
        """With one possible state left, hindsight is no better."""
        values = self.lower[step][belief[0][0]][self.columns]
        best = int(np.argmax(values))
        if values[best] == -np.inf:
            return 0.0, -1
        return float(values[best]), int(self.columns[best])

    def _search(self, step: int, belief: Belief) -> tuple[float, int]:
        states, weights = _arrays(belief)
        bounds = weights @ self.upper[step][states][:, self.columns]
        self.left -= 1
        self.cut = self.cut or self.left < 0  # from here on the first action tried is taken
        best, chosen = -np.inf, -1
        for place in np.argsort(-bounds, kind="stable"):
            if bounds[place] <= best + TIE or bounds[place] == -np.inf:
                break
            column = int(self.columns[place])
            value = self._value(step, belief, column)
            if value > best:
                best, chosen = value, column
            if self.cut:
                break
        return (best, chosen) if chosen >= 0 else (0.0, -1)

    def _value(self, step: int, belief: Belief, column: int) -> float:
        """Expected value of an action in a belief."""
        gained, views = self._after(step, belief, column)
        following = sum(chance * self.best(step + 1, after)[0] for chance, after in views)
        return float(gained @ (1.0, SUCCESS_WEIGHT, self.worst)) + following

    def _after(
        self, step: int, belief: Belief, column: int
    ) -> tuple[np.ndarray, list[tuple[float, Belief]]]:
        """What an action comes to.

        Returns:
            [3]: expected reward, chance of success, and chance of reaching what was left
            unexplored; and (chance, belief) of all that may be seen then, ends left out.
        """
        layer, (states, weights) = self.graph.layers[step], _arrays(belief)
        child, seen = layer.child[states, column], layer.seen[states, column]  # [n, O]
        chance = weights[:, None] * self.graph.chances
        gained = np.array(
            [
                np.sum(chance * layer.reward[states, column]),
                np.sum(chance * layer.success[states, column]),
                np.sum(chance[child == UNEXPLORED]),
            ]
        )
        views: dict[int, dict[int, float]] = {}
        for state, outcome in zip(*np.nonzero(child >= 0), strict=True):
            view = views.setdefault(int(seen[state, outcome]), {})
            after = int(child[state, outcome])
            view[after] = view.get(after, 0.0) + float(chance[state, outcome])
        return gained, [(sum(view.values()), _belief(view)) for view in views.values()]

    def plan(self) -> tuple[Plan, float, float]:
        """(the best play, its expected return, its chance of success)."""
        rows, actions = [self.graph.layers[0].rows[0]], [-1]
        children: list[list[int]] = [[]]
        total = np.zeros(3)
        views: dict[int, dict[int, float]] = {}
        for state, (view, weight) in enumerate(
            zip(self.graph.seen, self.graph.weights, strict=True)
        ):
            views.setdefault(int(view), {})[state] = float(weight)
        arrivals = [(0, sum(view.values()), _belief(view)) for view in views.values()]
        for step, layer in enumerate(self.graph.layers):
            nodes: dict[Belief, int] = {}
            chances: dict[Belief, float] = {}
            for parent, chance, belief in arrivals:
                node = nodes.setdefault(belief, len(rows))
                if node == len(rows):
                    state = belief[0][0]
                    rows.append(layer.rows[state])
                    actions.append(self._action(step, belief))
                    children.append([])
                children[parent].append(node)
                chances[belief] = chances.get(belief, 0.0) + chance
            arrivals = []
            for belief, node in nodes.items():
                column = self.best(step, belief)[1]
                if column >= 0:
                    gained, after = self._after(step, belief, column)
                    total += chances[belief] * gained
                    arrivals += [(node, chances[belief] * p, b) for p, b in after]
        most = max(map(len, children))
        padded = [branch + [-1] * (most - len(branch)) for branch in children]
        plan = Plan(np.stack(rows), np.array(actions, np.int32), np.array(padded, np.int32))
        return plan, float(total[0] + self.worst * total[2]), float(total[1])

    def _action(self, step: int, belief: Belief) -> int:
        """The env's action in a belief: to wait where nothing can happen any more."""
        column = self.best(step, belief)[1]
        if column < 0:
            return self.graph.wait
        return int(self.graph.layers[step].action[belief[0][0], column])


def _belief(weights: Mapping[int, float]) -> Belief:
    """A belief of chance 1; weights rounded, so that equal beliefs are equal."""
    total = sum(weights.values())
    return tuple(sorted((state, round(w / total, 12)) for state, w in weights.items()))


def _arrays(belief: Belief) -> tuple[np.ndarray, np.ndarray]:
    """[n] states and [n] float64 weights."""
    states, weights = zip(*belief, strict=True)
    return np.array(states), np.array(weights)
