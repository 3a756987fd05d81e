"""`lifedrift task check`: what it says of a task, and of one that makes no sense."""

import json

import pytest

from lifedrift_jax.cli import main
from lifedrift_jax.life_stack.library import build
from lifedrift_jax.task_check import LEGEND, check


def test_the_optimum_and_the_best_play_are_told(tmp_path, capsys):
    build("flight_crisis").save(tmp_path / "task.yaml")
    assert main(["task", "check", str(tmp_path / "task.yaml")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("flight_crisis (difficulty 4): ")
    assert "horizon 30, deadline 20, budget 800" in lines
    assert "best expected return     3.500" in lines and "chance of success        1.000" in lines
    picture = {line.split("  ")[0]: line.split("  ")[1] for line in lines if "  " in line}
    assert picture["rebook_premium"] == "o@"


def test_a_picture_has_a_column_a_step():
    lines = check(build("train_delay"))
    first = next(i for i, line in enumerate(lines) if line.startswith("step "))
    rows = lines[first : lines.index(f"({LEGEND})")]
    assert rows[0].split()[1] == "012345" and max(map(len, rows)) == len(rows[0])
    cells = "".join(row[len("other actions  ") :] for row in rows[1:])
    told = "\n".join(lines[first:])
    assert cells.count("@") == told.count("the route is complete") > 1
    assert cells.count("o") + cells.count("@") == 6  # an action a step
    assert cells.count("!") == 2  # both events


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"horizon": 0}, "horizon is 0"),
        ({"horizons": 3}, "no field 'horizons' (did you mean 'horizon'?)"),
        ({"success_conditions": []}, "success_conditions is []"),
    ],
)
def test_a_fault_is_one_line_that_names_the_field(change, message, tmp_path, capsys):
    content = build("flight_crisis").to_dict() | change
    (tmp_path / "task.json").write_text(json.dumps(content))
    assert main(["task", "check", str(tmp_path / "task.json")]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1 and message in said[0]
