"""Random Tasks that use all of the schema, most of them senseless; for parity tests."""

import numpy as np

from lifedrift_jax.life_stack import TYPES, ExoEvent, Milestone, Route, Task

# Key -> the values that it may take; `never` starts in no dict.
VALUES = {
    "switch": (False, True),
    "secret": (False, True),
    "mood": ("calm", "cross", "away"),
    "level": (0, 1, 2.5),
    "never": (False, True),
    "shown": ("a", "b"),
    "both": (1, 2),
    "done": (False, True),
}
OPERATORS = {str: ("eq", "ne"), bool: ("eq", "ne"), int: ("eq", "ne", "lt", "le", "gt", "ge")}


def random_task(generator: np.random.Generator, number: int) -> Task:
    """A task that compiles but for what needs a search; its own number makes its id."""

    def pick(options):
        return options[int(generator.integers(len(options)))]

    def some(options, most):
        count = int(generator.integers(0, min(most, len(options)) + 1))
        return [options[i] for i in generator.permutation(len(options))[:count].tolist()]

    def mapping(most, keys=tuple(VALUES)):
        return {key: pick(VALUES[key]) for key in some(keys, most)}

    def condition(key):
        kind = int if isinstance(VALUES[key][0], int) and key in ("level", "both") else str
        return {"key": key, "value": pick(VALUES[key]), "op": pick(OPERATORS[kind])}

    routes = [f"r{i}" for i in range(int(generator.integers(1, 6)))]
    milestones = [f"m{i}" for i in range(int(generator.integers(0, 5)))]
    start = {key: pick(values) for key, values in VALUES.items()}
    prior = {
        key: [[v, float(generator.integers(1, 4))] for v in VALUES[key]]
        for key in some(("secret", "mood"), 2)
    }
    constraints = {}
    if generator.random() < 0.7:
        constraints["deadline_step"] = int(generator.integers(1, 12))
    if generator.random() < 0.7:
        constraints["budget_max"] = int(generator.integers(0, 400))
    return Task(
        id=f"random{number}",
        domain="random",
        goal="None.",
        constraints=constraints,
        hidden_state={key: start[key] for key in ("secret", "mood", "both")},
        mutable_world={key: start[key] for key in ("switch", "level", "done")},
        visible_world={key: start[key] for key in ("shown", "both", *some(("level",), 1))},
        success_conditions=[{"key": "done", "value": True}, *map(condition, some(("level",), 1))],
        failure_conditions=[
            {"key": "missed_deadline", "value": True},
        ][: int(generator.integers(0, 2))]
        + [{"key": "never", "value": True}][: int(generator.integers(0, 2))],
        event_schedule=[
            ExoEvent(
                step=pick((-1, 0, 1, 2, 3, 5)),
                probability=pick((0.0, 0.1, 0.5, 1.0)),
                id=f"e{i}",
                description="",
                world_mutation=mapping(2, ("switch", "level", "never", "shown")),
                hidden_state_mutation=mapping(2, ("secret", "mood", "both")),
                closes_routes=some(routes, 2),
            )
            for i in range(int(generator.integers(0, 6)))
        ]
        + [ExoEvent(99, 1.0, "late", "", {"never": True}, {}, [])],  # makes it a known key
        viable_routes=[
            Route(
                id=name,
                name="",
                description="",
                required_action_types=some((*TYPES, "call", "sign"), 3) or ["plan"],
                preconditions=mapping(2),
                consequences=mapping(3),
                closes_routes=some(routes, 2),
                milestones_unlocked=some(milestones, 1),
                final_reward=float(generator.integers(-4, 13)) / 4,
                cost={"money": int(generator.integers(0, 200))} if generator.random() < 0.5 else {},
            )
            for name in routes
        ],
        milestones=[
            Milestone(
                name,
                "",
                (key := pick(tuple(VALUES))),
                pick(VALUES[key]),
                float(generator.integers(-2, 9)) / 4,
            )
            for name in milestones
        ],
        horizon=int(generator.integers(1, 16)),
        difficulty=1,
        domain_metadata={},
        hidden_prior=prior,
    )


def compilable(generator: np.random.Generator, count: int, compile_one):
    """[(task, what `compile_one` made of it)] of the first `count` that it does not refuse."""
    made = []
    number = 0
    while len(made) < count:
        task, number = random_task(generator, number), number + 1
        try:
            made.append((task, compile_one(task)))
        except ValueError as refused:
            assert any(word in str(refused) for word in ("at reset", "no route")), refused
    return made
