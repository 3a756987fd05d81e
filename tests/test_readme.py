"""What the README shows runs as it stands."""

import re
import shlex
from pathlib import Path

import pytest

from lifedrift_jax.cli import main
from train.__main__ import main as train

TEXT = (Path(__file__).parents[1] / "README.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.relaxed
def test_the_python_snippets_run_one_after_the_other(capsys):
    names: dict = {}
    for code in blocks("python"):
        exec(code, names)
    printed = capsys.readouterr().out.split()
    assert abs(float(printed[0]) - 0.722) < 0.001 and abs(float(printed[1]) - 0.722) < 0.001
    assert names["terminated"].all() and names["summary"].episodes == 10_000
    assert names["played"].invalid_actions == 0 and names["words"].startswith("Task medium.")
    assert names["crisis"].best_return == 2.5 and names["step"].reward == 0.5


def commands():
    return [line for block in blocks("bash") for line in block.splitlines()]


def test_the_commands_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    ran = [line for line in commands() if line.startswith("lifedrift ")]
    for line in ran:
        arguments = shlex.split(line, comments=True)[1:]
        arguments = ["200" if word == "100000" else word for word in arguments]
        assert main(arguments) == 0, capsys.readouterr().err
    assert len(ran) == 9 and list(tmp_path.rglob("*.png"))


@pytest.mark.relaxed
def test_the_training_commands_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    small = "--config num_envs=8 num_steps=5 total_updates=2 eval_every=1 eval_episodes=8"
    prefix = "python -m train "
    ran = [line for line in commands() if line.startswith(prefix)]
    for line in ran:
        arguments = shlex.split(line.removeprefix(prefix), comments=True)
        arguments = [{"100000": "200", "8": "1", "4": "1"}.get(word, word) for word in arguments]
        fresh = arguments[0] == "run" and "--resume" not in arguments
        assert train([*arguments, *(small.split() if fresh else ())]) == 0, capsys.readouterr().err
    assert len(ran) == 4 and len(list(tmp_path.rglob("curve.png"))) == 2


def test_every_figure_named_in_the_text_is_in_the_repository():
    for path in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert (Path(__file__).parents[1] / path).exists(), path
