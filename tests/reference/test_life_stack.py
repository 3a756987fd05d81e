"""The reference interpreter against small tasks worked by hand from the rules in words."""

import copy
from types import SimpleNamespace

import pytest
from reference.life_stack import ROLLBACK, WAIT, Action, Episode

DONE = [{"key": "done", "value": True}]
MISSED = [{"key": "missed_deadline", "value": True}]


def make_route(name, types, reward=0.0, needs=None, sets=None, closes=(), unlocks=(), **fields):
    return SimpleNamespace(
        id=name,
        required_action_types=types.split(),
        preconditions=needs or {},
        consequences=sets or {},
        closes_routes=list(closes),
        milestones_unlocked=list(unlocks),
        final_reward=reward,
        **fields,
    )


def make_event(step, probability=1.0, world=None, hidden=None, closes=()):
    return SimpleNamespace(
        step=step,
        probability=probability,
        world_mutation=world or {},
        hidden_state_mutation=hidden or {},
        closes_routes=list(closes),
    )


def make_milestone(name, key, reward, value=True):
    return SimpleNamespace(id=name, condition_key=key, condition_value=value, reward=reward)


def make_task(routes=(), events=(), milestones=(), hidden=None, world=None, visible=None, **fields):
    plain = {"success_conditions": DONE, "failure_conditions": [], "constraints": {}, "horizon": 10}
    return SimpleNamespace(
        hidden_state=hidden or {},
        mutable_world=world or {},
        visible_world=visible or {},
        event_schedule=list(events),
        viable_routes=list(routes),
        milestones=list(milestones),
        **(plain | fields),
    )


def flight_crisis():
    rebook = {"needs": {"card_available": True}, "sets": {"flight_rebooked": True}}
    rebook |= {"closes": ["wait_lounge"], "unlocks": ["m1"]}
    lounge = {"needs": {"lounge_access": True}, "sets": {"caught_up": True}}
    lounge |= {"closes": ["rebook_premium"], "unlocks": ["m2"]}
    return make_task(
        routes=[
            make_route("rebook_premium", "communicate execute", 2.5, **rebook),
            make_route("wait_lounge", "wait plan", 1.8, **lounge),
        ],
        events=[
            make_event(5, hidden={"card_available": False}),
            make_event(8, world={"lounge_access": False}, closes=["wait_lounge"]),
        ],
        milestones=[
            make_milestone("m1", "flight_rebooked", 1.0),
            make_milestone("m2", "caught_up", 0.8),
        ],
        hidden={"card_available": True},
        world={"lounge_access": True, "flight_rebooked": False, "caught_up": False},
        visible={"lounge_access": True},
        success_conditions=[{"key": "flight_rebooked", "value": True}],
        failure_conditions=MISSED,
        constraints={"budget_max": 800, "deadline_step": 20},
        horizon=30,
    )


def play(episode, *labels):
    """Take the actions of these names, every draw 0; one that is not legal is taken as None."""
    draws, rewards = [0.0] * len(episode.task.event_schedule), []
    for label in labels:
        action = {str(action): action for action in episode.legal()}.get(label)
        rewards.append(episode.step(action, draws))
    return rewards


def names(episode):
    return {str(action) for action in episode.legal()}


def snapshot(episode):
    """All that an episode is, as text."""
    worlds = [vars(world) for world in (episode.world, episode.idle) if world]
    parts = [(name, part) for world in worlds for name, part in world.items() if name != "task"]
    tidy = [(name, sorted(part) if isinstance(part, set) else part) for name, part in parts]
    return repr((tidy, episode.rollback_made))


def best_return(episode, known):
    """The best that can yet be paid, by trying everything but inspections."""
    if episode.finished:
        return 0.0
    name = snapshot(episode)
    if name not in known:
        known[name] = -float("inf")
        for action in episode.legal():
            if action.kind != "inspect":
                after = copy.deepcopy(episode, {id(episode.task): episode.task})
                reward = after.step(action, [0.0] * len(episode.task.event_schedule))
                known[name] = max(known[name], reward + best_return(after, known))
    return known[name]


def test_flight_rebooked_at_once():
    episode = Episode(flight_crisis())
    assert episode.outcome == "started"
    assert play(episode, "rebook_premium:execute", "rebook_premium:communicate") == [0.0, 3.5]
    assert episode.finished and episode.success and not episode.failure
    assert (episode.completed, episode.closed) == ({"rebook_premium"}, {"wait_lounge"})
    assert (episode.reached, episode.outcome, episode.paid) == ({"m1"}, "completed", 3.5)


def test_flight_waited_out_in_the_lounge_fails_at_the_deadline():
    episode = Episode(flight_crisis())
    assert play(episode, "wait_lounge:wait", "wait_lounge:plan") == [0.0, pytest.approx(2.6)]
    assert not episode.finished and episode.closed == {"rebook_premium"}
    assert not any(action.kind == "route" for action in episode.legal())
    assert set(play(episode, *["wait"] * 17)) == {0.0} and not episode.finished
    play(episode, "wait")
    assert episode.step_count == 20 and episode.values["missed_deadline"] is True
    assert episode.failure and not episode.success and episode.finished


def test_flight_optimum():
    episode = Episode(flight_crisis())
    assert best_return(episode, {}) == pytest.approx(3.5)


def test_price_surge_burns_the_blind_attempt():
    blind, late, wary = (Episode(flight_crisis()) for _ in range(3))
    play(blind, *["wait"] * 5, "rebook_premium:communicate")
    assert (blind.outcome, blind.closed) == ("unknown", {"rebook_premium"})
    assert blind.used["rebook_premium"] == set() and not blind.finished
    play(late, *["wait"] * 4, "rebook_premium:communicate", "rebook_premium:execute")
    assert (late.outcome, late.used["rebook_premium"]) == ("unknown", {"communicate"})
    play(wary, *["wait"] * 4, "inspect:card_available")
    assert wary.shown() == {"lounge_access": True, "card_available": True}
    play(wary, "rebook_premium:communicate")
    assert (wary.outcome, wary.closed) == ("precondition", set())
    assert wary.shown()["card_available"] is False
    assert "rebook_premium:communicate" in names(wary)


def test_event_closes_a_route_in_the_very_call():
    episode = Episode(flight_crisis())
    play(episode, *["wait"] * 8)
    assert "wait_lounge:plan" in names(episode)
    play(episode, "wait_lounge:plan")
    assert (episode.outcome, episode.used["wait_lounge"]) == ("closed", set())
    assert episode.fired == {0, 1} and "wait_lounge:plan" not in names(episode)


@pytest.mark.parametrize(("deadline", "success"), [(3, True), (2, True), (1, False)])
def test_deadline(deadline, success):
    finish = make_route("finish", "plan execute", 1.0, sets={"done": True})
    limit = {"deadline_step": deadline}
    episode = Episode(make_task([finish], constraints=limit, failure_conditions=MISSED))
    assert sum(play(episode, "finish:plan", "finish:execute")) == (1.0 if success else 0.0)
    assert (episode.success, episode.failure) == (success, not success)
    assert episode.values["missed_deadline"] is not success


def test_horizon_of_one():
    finish = make_route("finish", "execute", 1.0, sets={"done": True})
    task = make_task(routes=[finish], horizon=1)
    idle, busy = Episode(task), Episode(task)
    assert play(idle, "wait", "finish:execute") == [0.0, 0.0]
    assert idle.finished and not idle.success and not idle.failure
    assert (idle.step_count, idle.outcome, idle.completed) == (1, "waited", set())
    assert play(busy, "finish:execute", "finish:execute", "rollback") == [1.0, 0.0, 0.0]
    assert busy.success and busy.paid == 1.0 and busy.step_count == 1
    every = {"finish:execute", "inspect:done", "inspect:missed_deadline", "wait", "rollback"}
    assert names(idle) == names(busy) == every


def test_success_on_the_last_step_wins_a_tie():
    finish = make_route("finish", "plan execute", 1.0, sets={"done": True})
    task = make_task(routes=[finish], horizon=2, failure_conditions=DONE)
    episode = Episode(task)
    assert play(episode, "finish:plan", "finish:execute") == [0.0, 1.0]
    assert episode.success and not episode.failure and episode.finished


def test_rollback_reopens_a_burnt_route_once():
    call = make_route("call", "communicate", needs={"awake": True})
    task = make_task(routes=[call], hidden={"awake": True})
    episode = Episode(task, {"awake": False})
    assert not episode.can_roll_back
    play(episode, "call:communicate")
    assert (episode.outcome, episode.closed) == ("unknown", {"call"})
    assert episode.can_roll_back and "rollback" in names(episode)
    play(episode, "rollback")
    assert (episode.outcome, episode.closed, episode.step_count) == ("rolled_back", set(), 2)
    assert "call:communicate" in names(episode) and not episode.can_roll_back
    play(episode, "call:communicate", "rollback")
    assert (episode.outcome, episode.closed, episode.step_count) == ("invalid", {"call"}, 4)


def test_rollback_follows_an_action_or_a_wait_alone():
    episode = Episode(make_task())
    play(episode, "inspect:missed_deadline")
    assert not episode.can_roll_back
    play(episode, "wait")
    assert episode.can_roll_back
    play(episode, None)
    assert not episode.can_roll_back


def test_rollback_undoes_a_completion_but_no_event():
    trade = {"sets": {"owner": "other"}, "closes": ["keep"], "unlocks": ["sold"]}
    sell = make_route("sell", "execute", 2.0, **trade, cost={"money": 30})
    task = make_task(
        routes=[sell, make_route("keep", "plan")],
        world={"owner": "self", "rain": False, "night": False},
        milestones=[
            make_milestone("sold", "owner", 1.0, "other"),
            make_milestone("wet", "rain", 0.25),
            make_milestone("dark", "night", 0.5),
        ],
        events=[make_event(0, world={"rain": True}), make_event(1, world={"night": True})],
    )
    episode = Episode(task)
    assert play(episode, "sell:execute") == [3.25]
    assert (episode.spent, episode.closed, episode.completed) == (30.0, {"keep"}, {"sell"})
    assert play(episode, "rollback") == [-2.5]
    assert (episode.spent, episode.closed, episode.completed) == (0.0, set(), set())
    assert (episode.reached, episode.paid, episode.step_count) == ({"wet", "dark"}, 0.75, 2)
    owner = {"owner": "self", "rain": True, "night": True, "missed_deadline": False}
    assert episode.values == owner and episode.used == {"sell": set(), "keep": set()}
    assert episode.fired == {0, 1}


def test_rollback_gives_what_a_wait_would_have_given():
    douse = make_route("douse", "execute", 0.5, sets={"lit": False})
    task = make_task(
        routes=[douse],
        world={"lit": False},
        milestones=[make_milestone("light", "lit", 2.0)],
        events=[make_event(0, world={"lit": True})],
    )
    episode = Episode(task)
    assert play(episode, "douse:execute") == [0.5]
    assert episode.reached == set() and episode.values["lit"] is False
    assert play(episode, "rollback") == [1.5]
    assert episode.reached == {"light"} and episode.values["lit"] is True


def test_rollback_keeps_inspections():
    call = make_route("call", "communicate plan")
    episode = Episode(make_task(routes=[call], hidden={"awake": True}))
    play(episode, "inspect:awake", "call:plan", "rollback")
    assert episode.inspected == {"awake"} and episode.used == {"call": set()}


def test_budget():
    routes = [make_route(name, "plan spend", 1.0, cost={"money": 300}) for name in ("a", "b", "c")]
    del routes[2].cost
    episode = Episode(make_task(routes=routes, constraints={"budget_max": 500}))
    assert play(episode, "a:plan", "a:spend", "b:plan", "b:spend") == [0.0, 1.0, 0.0, 0.0]
    assert (episode.outcome, episode.used["b"]) == ("budget", {"plan"})
    assert episode.closed == set() and "b:spend" in names(episode)
    assert play(episode, "c:spend", "c:plan") == [0.0, 1.0] and episode.spent == 300
    exact = Episode(make_task(routes=routes, constraints={"budget_max": 600}))
    play(exact, "a:plan", "a:spend", "b:plan", "b:spend")
    assert exact.completed == {"a", "b"} and exact.spent == 600


def test_illegal_actions_count_a_step_and_hold_milestones_back():
    task = make_task(
        routes=[make_route("go", "plan execute")],
        milestones=[make_milestone("lit", "light", 1.0)],
        events=[make_event(0, world={"light": True})],
    )
    odd = [
        None,
        Action("route", "go", "rest"),
        Action("route", "no", "plan"),
        Action("inspect", "x"),
    ]
    for action in [*odd, Action("nap"), ROLLBACK]:
        episode = Episode(task)
        assert episode.step(action, [0.0]) == 0.0
        assert (episode.outcome, episode.step_count) == ("invalid", 1)
        assert episode.values["light"] is True and episode.reached == set()
        assert not episode.can_roll_back
        assert episode.step(WAIT, [0.0]) == 1.0
    again = Episode(task)
    play(again, "go:plan", "go:plan", "inspect:light", "inspect:light")
    assert (again.outcome, again.step_count, again.used) == ("invalid", 4, {"go": {"plan"}})


def test_milestone_is_paid_once():
    task = make_task(
        routes=[
            make_route("up", "execute", sets={"high": True}, unlocks=["top"]),
            make_route("down", "execute", sets={"high": False}),
            make_route("lift", "execute", sets={"high": True}),
            make_route("claim", "execute", 0.5, unlocks=["top", "word"]),
        ],
        milestones=[make_milestone("top", "high", 1.0), make_milestone("word", "said", 0.25)],
    )
    episode = Episode(task)
    climb = ["up:execute", "wait", "down:execute", "lift:execute", "claim:execute"]
    assert play(episode, *climb) == [1.0, 0.0, 0.0, 0.0, 0.75]
    assert episode.reached == {"top", "word"} and "said" not in episode.values


def test_probabilistic_event_fires_at_most_once_and_after_the_scheduled_ones():
    chance = make_event(-1, 0.3, world={"sky": "grey"})
    scheduled = [make_event(2, world={"sky": "blue"}), make_event(3, world={"sky": "red"})]
    task = make_task(world={"sky": "blue"}, events=[chance, *scheduled])
    episode = Episode(task)
    seen = []
    for draw in (0.9, 0.3, 0.29, 0.0, 0.0):
        episode.step(WAIT, [draw, 0.0, 0.0])
        seen.append((episode.values["sky"], 0 in episode.fired))
    expected = [("blue", False), ("blue", False), ("grey", True), ("red", True), ("red", True)]
    assert seen == expected


def test_operators_and_absent_keys():
    episode = Episode(make_task(world={"flag": True, "count": 1, "name": "a"}))
    holds = episode.holds
    assert holds("count", 1.0) and holds("count", 2, "lt") and holds("count", 1, "ge")
    assert not holds("count", 1, "gt") and holds("count", 1, "le")
    assert not holds("flag", 1) and holds("flag", 1, "ne") and not holds("count", True)
    assert holds("name", "a") and holds("name", "b", "ne")
    assert holds("absent", 1, "ne")
    assert not any(holds("absent", 1, op) for op in ("eq", "lt", "le", "gt", "ge"))


def test_inspection_shows_live_and_absent_values():
    nap = make_route("nap", "wait", needs={"bed": True})
    task = make_task(
        routes=[nap],
        hidden={"mood": "low"},
        visible={"hour": 9},
        events=[make_event(2, world={"bed": True}, hidden={"mood": "high"})],
    )
    episode = Episode(task)
    inspections = {"inspect:mood", "inspect:bed", "inspect:missed_deadline"}
    assert names(episode) == {"nap:wait", "wait"} | inspections
    play(episode, "inspect:bed", "inspect:mood")
    assert episode.shown() == {"hour": 9, "bed": None, "mood": "low"}
    play(episode, "nap:wait")
    assert episode.shown() == {"hour": 9, "bed": True, "mood": "high"}
    assert (episode.outcome, episode.completed) == ("completed", {"nap"})


def test_absent_world_key_blocks_without_burning():
    nap = make_route("nap", "rest", needs={"bed": True})
    task = make_task(routes=[nap], events=[make_event(7, world={"bed": True})])
    episode = Episode(task)
    play(episode, "nap:rest")
    assert (episode.outcome, episode.closed) == ("precondition", set())
