import json

import pytest
from summaries import estimate_of, plain_summary

from lifedrift_jax.planning import normalized_score, references
from lifedrift_jax.planning.scores import POLICIES, _table, has_references, write
from lifedrift_jax.registry import registered

IDS = [env_id for env_id in registered() if has_references(env_id)]


def summary(env_id, policy, score):
    description = {"env": env_id, "policy": policy, "jax": "0"}
    return plain_summary(description, estimate_of(score), count=9)


def test_every_tier_of_task_flow_has_references():
    assert [i for i in IDS if i.startswith("task_flow/")] == [
        f"task_flow/{tier}-v0" for tier in ("easy", "medium", "hard")
    ]


@pytest.mark.parametrize("env_id", IDS)
def test_references_are_in_order_and_say_how_they_were_made(env_id):
    known = references(env_id)
    bounds = [bound for name in POLICIES for bound in known[name]["interval"]]
    assert bounds == sorted(bounds)  # the intervals are apart
    for name in POLICIES:
        low, high = known[name]["interval"]
        assert low < known[name]["score"] < high < low + 0.02
    assert all(known[name]["policy"] == policy for name, policy in POLICIES.items())
    assert all(known[name]["episodes"] >= 500 for name in POLICIES)
    assert known["command"].startswith("lifedrift references ")


@pytest.mark.parametrize("tier", ["medium", "hard"])
def test_the_planner_is_above_the_heuristic_of_task_flow(tier):
    known = references(f"task_flow/{tier}-v0")
    assert known["optimum"]["score"] >= known["heuristic"]["score"] + 0.03


@pytest.mark.parametrize("env_id", IDS)
def test_the_scale_runs_from_random_play_to_the_optimum(env_id):
    known = references(env_id)
    assert normalized_score(env_id, known["random"]["score"]) == 0
    assert normalized_score(env_id, known["optimum"]["score"]) == 1
    assert 0 < normalized_score(env_id, known["heuristic"]["score"]) < 1


def test_an_id_without_a_version_is_the_newest():
    assert references("task_flow/hard") == references("task_flow/hard-v0")


@pytest.mark.parametrize(
    ("env_id", "says"),
    [("life_drift/energy_balance-v0", "reference scores"), ("task_flow/hrd", "task_flow/hard")],
)
def test_an_id_without_references_is_refused(env_id, says):
    with pytest.raises(ValueError, match=says):
        normalized_score(env_id, 0.5)


def test_written_references_keep_those_of_other_ids(tmp_path):
    file = tmp_path / "references.json"
    for env_id in ("a/b-v0", "a/c-v0"):
        scores = dict(zip(POLICIES.values(), (0.1, 0.2, 0.4), strict=True))
        write(file, [summary(env_id, *pair) for pair in scores.items()], f"made {env_id}")
    table = json.loads(file.read_text())
    assert list(table) == ["a/b-v0", "a/c-v0"]
    for env_id, entry in table.items():
        assert [entry[name]["score"] for name in POLICIES] == [0.1, 0.2, 0.4]
        assert entry["command"] == f"made {env_id}"


def test_the_table_is_read_once():
    assert _table() is _table()
