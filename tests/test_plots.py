"""Pictures: what is drawn is what the summaries say, and nothing is cut off or covered."""

import json
import subprocess
import sys
from itertools import combinations

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from summaries import estimate_of, plain_summary

from lifedrift_jax import plots

VARIABLES = ("alignment", "drift", "energy", "fatigue", "focus")
CONSTANTS = tuple(
    f"constant:{action}"
    for action in (
        "suggest_task",
        "prioritize_goal",
        "insert_break",
        "reschedule_task",
        "reduce_difficulty",
        "do_nothing",
    )
)


def summary(task="energy_balance-v0", policy="random", steps=4, threshold=0.85, watched=True):
    """A summary with a score peak of its own for each policy."""
    counts = np.zeros(1000, int)
    centre = 100 + 131 * sum(policy.encode()) % 800
    counts[centre - 40 : centre + 40] = 5
    counts[centre] = 600
    mean = float((counts * (np.arange(1000) + 0.5)).sum() / counts.sum() / 1000)
    slope = np.linspace(0, 1, steps + 1)
    series = {
        name: {
            "count": [1000] * (steps + 1),
            "mean": (0.2 + 0.15 * place + 0.2 * slope).tolist(),
            "sd": (0.4 * slope).tolist(),
        }
        for place, name in enumerate(VARIABLES)
    }
    description = {
        "env": f"life_drift/{task}",
        "policy": policy,
        "params": {"cascade_threshold": threshold},
    }
    return plain_summary(
        description,
        estimate_of(mean),
        mean_length=float(steps),
        steps=series if watched else {},
        histograms={"score": {"low": 0.0, "high": 1.0, "counts": counts.tolist()}},
    )


def lines(axis, colour):
    """Lines of data (more than one point) in a colour."""
    return [x for x in axis.get_lines() if x.get_color() == colour and len(x.get_xdata()) > 1]


@pytest.mark.parametrize(
    ("draw", "tasks", "policies"),
    [
        (plots.overview, ["drift_correction"], ["random"]),
        (plots.overview, ["long_term_stability"] * 4, CONSTANTS),
        (plots.score_histograms, ["long_term_stability"] * 4, CONSTANTS),
        (plots.mean_trajectories, ["drift_correction"], CONSTANTS),
    ],
)
def test_nothing_is_cut_off_or_covered(draw, tasks, policies):
    names = [f"{task}-v{version}" for version, task in enumerate(tasks)]
    figure = draw(summary(task, policy) for task in names for policy in policies)
    figure.draw_without_rendering()
    (legend,) = (x.get_window_extent() for x in figure.legends)
    panels = [axis.get_tightbbox() for axis in figure.axes]
    for box in (legend, *panels):
        assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1, "cut off left or right"
        assert figure.bbox.y0 <= box.y0 and box.y1 <= figure.bbox.y1, "cut off below or above"
    for one, other in combinations([legend, *panels], 2):
        assert not one.padded(-1).overlaps(other), "words of a panel or the legend overlap"


def test_a_task_is_a_row_of_its_histogram_and_its_variables():
    figure = plots.overview(
        [summary("drift_correction-v0"), summary("drift_correction-v0", "rule"), summary("b")]
    )
    assert isinstance(figure, Figure)
    assert len(figure.axes) == 2 * (1 + len(VARIABLES))
    assert figure.axes[0].get_title(loc="left") == "drift correction v0"
    assert tuple(axis.get_title() for axis in figure.axes[7:]) == VARIABLES
    assert {axis.get_xlabel() for axis in figure.axes} == {"score", "step"}
    assert figure.axes[1].get_ylabel() == "value in [0, 1]"


def test_legend_names_policies_band_mean_and_threshold():
    (legend,) = plots.overview([summary(), summary(policy="rule")]).legends
    assert {text.get_text() for text in legend.get_texts()} == {
        "random",
        "rule",
        "mean score",
        "mean ± 1 sd over episodes",
        "cascade threshold (fatigue)",
    }


def test_histogram_is_the_density_of_the_counts():
    one = summary(policy="rule")
    (axis,) = plots.score_histograms([one]).axes
    values, edges, _ = axis.patches[-1].get_data()
    counts = np.reshape(one.histograms["score"]["counts"], (plots.SCORE_BINS, -1)).sum(axis=1)
    assert np.sum(values * np.diff(edges)) == pytest.approx(1)
    np.testing.assert_allclose(values / values.max(), counts / counts.max())
    (mark,) = [x for x in axis.get_lines() if x.get_marker() == "v"]
    assert mark.get_xdata() == pytest.approx(one.score.mean)


def test_trajectory_is_the_mean_with_a_band_of_one_sd_clipped_to_the_range():
    one = summary(policy="rule")
    axis = plots.mean_trajectories([one]).axes[4]  # focus: mean .8 to 1, sd 0 to .4
    (line,) = lines(axis, plots.COLOURS["rule"])
    np.testing.assert_allclose(line.get_ydata(), one.steps["focus"]["mean"])
    np.testing.assert_array_equal(line.get_xdata(), range(5))
    band = axis.collections[0].get_paths()[0].vertices
    assert band[:, 1].max() == 1
    assert band[band[:, 0] == 4][:, 1].min() == pytest.approx(1.0 - 0.4)


def test_a_variable_beyond_1_has_a_panel_that_holds_it_and_numbers_of_its_own():
    record = summary().to_dict()
    record["steps"]["alignment"]["mean"] = [12.0, 9, 6, 3, 0]
    first, second, *_ = plots.mean_trajectories([record]).axes
    (line,) = lines(first, plots.COLOURS["random"])
    low, high = first.get_ylim()
    assert low <= line.get_ydata().min() and line.get_ydata().max() <= high < 14
    assert second.get_ylim() == (-0.02, 1.02)
    assert first.get_ylabel() == "value"
    assert second.yaxis.get_tick_params()["labelleft"]


def test_steps_that_no_episode_took_are_not_drawn():
    record = summary().to_dict()
    record["steps"]["drift"]["count"][3:] = [0, 0]
    (line,) = lines(plots.mean_trajectories([record]).axes[1], plots.COLOURS["random"])
    np.testing.assert_array_equal(line.get_xdata(), range(3))


def test_cascade_threshold_is_drawn_on_fatigue_alone_where_the_sweep_had_it():
    figure = plots.mean_trajectories([summary(threshold=0.7)])
    for axis in figure.axes:
        limits = [x.get_ydata()[0] for x in lines(axis, plots.GUIDE["color"])]
        assert limits == ([0.7] if axis.get_title() == "fatigue" else [])


def test_a_policy_looks_the_same_in_every_picture():
    def style(picture, policy):
        (legend,) = picture.legends
        texts = [text.get_text() for text in legend.get_texts()]
        line = legend.get_lines()[texts.index(policy)]
        return line.get_color(), line.get_linestyle(), line._dash_pattern

    for policy in ("greedy", "constant:insert_break"):
        alone = plots.overview([summary(policy=policy)])
        among = plots.mean_trajectories([summary(policy=p) for p in ("random", "rule", policy)])
        assert style(alone, policy) == style(among, policy)


def test_no_two_policies_look_alike():
    names = [*plots.COLOURS, *CONSTANTS, *(f"runs/{i}" for i in range(12))]
    styles = plots._styles({"task": {name: {} for name in names}})
    assert len({str(style) for style in styles.values()}) == len(names) == 25


def test_dict_and_summary_draw_the_same():
    one = summary()
    pictures = [plots.overview([x]) for x in (one, json.loads(json.dumps(one.to_dict())))]
    first, second = (
        [line.get_ydata() for axis in p.axes for line in axis.get_lines()] for p in pictures
    )
    assert len(first) == len(second) > 5
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


def test_sweeps_that_watched_no_steps_are_in_the_histogram_only():
    figure = plots.overview([summary(watched=False), summary(policy="rule")])
    assert len(lines(figure.axes[1], plots.COLOURS["random"])) == 0
    assert len(lines(figure.axes[1], plots.COLOURS["rule"])) == 1
    assert len(plots.overview([summary(watched=False)]).axes) == 1
    with pytest.raises(ValueError, match="no summary holds steps"):
        plots.mean_trajectories([summary(watched=False)])


def test_tasks_with_other_variables_have_panels_of_their_own():
    other = summary("b").to_dict()
    other["steps"] = {"budget": other["steps"]["drift"]}
    axes = plots.mean_trajectories([summary("a"), other]).axes
    assert [axis.get_title() for axis in axes if axis.axison] == [*VARIABLES, "budget"]


def test_nothing_to_draw_and_doubled_summaries_are_errors():
    with pytest.raises(ValueError, match="no summaries"):
        plots.overview([])
    with pytest.raises(ValueError, match="two summaries are of policy random"):
        plots.score_histograms([summary(), summary()])


def test_summaries_load_in_an_order_to_draw(tmp_path):
    for policy in ("constant:insert_break", "greedy", "random", "rule"):
        folder = tmp_path / "a" / policy.replace(":", "-")
        folder.mkdir(parents=True)
        (folder / "summary.json").write_text(json.dumps(summary(policy=policy).to_dict()))
    policies = [record["description"]["policy"] for record in plots.load_summaries(tmp_path)]
    assert policies == ["random", "rule", "greedy", "constant:insert_break"]


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"description": {"env": "a"}}', "\udcff"])
def test_a_damaged_summary_is_named(tmp_path, text):
    (tmp_path / "summary.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ValueError, match=r"summary\.json is damaged"):
        plots.load_summaries(tmp_path)


def test_no_global_state_of_matplotlib_changes(tmp_path, clean_environ):
    before = dict(matplotlib.rcParams)
    plots.overview([summary()]).savefig(tmp_path / "x.png")
    assert dict(matplotlib.rcParams) == before
    check = "import sys, lifedrift_jax.plots; sys.exit('matplotlib.pyplot' in sys.modules)"
    subprocess.run([sys.executable, "-c", check], check=True, env=clean_environ)
