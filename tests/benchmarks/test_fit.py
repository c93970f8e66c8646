"""Time to a held-out quality: what is timed and judged, what candidates learn, what a run stores and goes on with."""

import dataclasses
import itertools
import math
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.special
from typer.testing import CliRunner

from benchmarks import tables
from benchmarks.fit import candidates, cases, child, suite, torch_loop
from benchmarks.fit.candidates import project
from benchmarks.harness import Run
from benchmarks.shapes import BenchError
from benchmarks.suites import bench as app
from tests.support import fit_rows
from workbench import data, models
from workbench.training import impossible_reason

TRAINED = [(name, model) for name in candidates.names() for model in candidates.get(name).models]


def ticking(step=1.0):
    """A clock that goes on by `step` at each look."""
    times = itertools.count()
    return lambda: step * next(times)


def points(values, leave, step=1.0):
    """The points of a training whose scorers are judged to have these values, one after the other."""
    given = iter(values)
    return list(child.points_of_steps(itertools.repeat(None), lambda scorer: next(given), leave, ticking(step)))


# The course of a training


def test_judging_is_not_timed():
    now = [0.0]

    def scorers():
        while True:
            now[0] += 1.0
            yield None

    def judged(scorer):
        now[0] += 100.0
        return 1.0 / now[0]

    found = child.points_of_steps(scorers(), judged, child.StopCondition(3.0), lambda: now[0])
    assert [point.seconds for point in found] == [1.0, 2.0, 3.0]


def test_points_close_to_the_one_before_are_not_judged():
    judged = points((1 / number for number in itertools.count(1)), child.StopCondition(140.0))
    assert child.EVERY < len(judged) < 100  # at 80 s on every eighth one


def test_a_fit_anew_has_its_own_seconds_and_the_ladder_ends_where_it_is_done():
    found = list(
        child.points_of_refits(
            lambda most: (None, most >= 3), lambda scorer: 1.0, child.StopCondition(100.0), ticking()
        )
    )
    assert [(point.seconds, point.number) for point in found] == [(1.0, 1), (1.0, 2), (1.0, 3)]


@pytest.mark.parametrize(
    ("values", "kept"),
    [
        ([3, 2, 1, 0.5], 3),  # at the target
        ([3, math.nan, 2], 2),  # lost
    ],
)
def test_a_training_is_left(values, kept):
    assert len(points(values, child.StopCondition(1000.0, target=1.0), 2.0)) == kept


def test_a_training_that_gains_nothing_is_left_unless_it_is_known_to_reach_the_target():
    def judged(target):
        leave = child.StopCondition(1000.0, target=target)
        return len(points([3, 2, *[2.5] * 20, 1.0], leave, 2.0)), leave.why

    assert judged(None) == (10, "no gain")  # for eight points and more than half of the time
    assert judged(1.0) == (23, "target")


@pytest.mark.parametrize("target", [0.0, None])
def test_early_points_are_judged_each(target):
    falling = (1 / number for number in itertools.count(1))
    found = points(falling, child.StopCondition(200.0, target=target))
    assert [point.number for point in found[: child.EVERY]] == list(range(1, child.EVERY + 1))
    assert child.EVERY < len(found) < 100


def test_a_training_that_goes_up_and_down_within_an_epoch_is_not_left_for_it():
    epochs = (value for best in (1.0, 0.5, 0.4) for value in (*[2.0] * 7, best))
    assert len(points(epochs, child.StopCondition(24.0))) == 24


def test_a_warm_up_reaches_the_second_epoch():
    toy, trained = fit_rows.judge_for("logistic"), []

    def steps(rows, value):
        while True:
            trained.append(rows.rows_point)
            yield lambda x: np.zeros(x.shape[0])

    child.warm_up(dataclasses.replace(candidates.get("ours, sparse"), steps=steps), toy.rows, {}, toy)
    assert sum(trained) > toy.rows.x.shape[0]


def test_of_a_quality_more_is_better():
    leave = child.StopCondition(1000.0, target=0.4, larger_is_better=True)
    assert len(points([0.1, 0.3, 0.4, 0.9], leave)) == 3
    assert cases.target_of(0.5, True, 0.01) < 0.5 < cases.target_of(0.5, False, 0.01)


def test_a_training_that_creeps_is_left_and_says_why():
    leave = child.StopCondition(1000.0)
    assert len(points((1.0 - 1e-6 * number for number in itertools.count()), leave, 0.1)) < 40
    assert leave.why == "no gain"


def test_a_fit_anew_is_not_done_again_for_points_that_are_known():
    asked, leave = [], child.StopCondition(5.0)
    refit = lambda most: (asked.append(most), False)  # noqa: E731
    known = [child.Point(0.1, 3.0, 1), child.Point(0.2, 2.0, 2)]
    found = list(child.points_of_refits(refit, lambda scorer: 1.0, leave, ticking(5.0), before=known))
    assert ([point.number for point in found], asked, leave.why) == ([1, 2, 3], [3], "limit")


def test_fits_anew_are_left_when_all_together_took_too_long():
    leave = child.StopCondition(5.0)
    found = list(child.points_of_refits(lambda most: (None, False), lambda scorer: 1.0, leave, ticking(3.0)))
    assert ([point.seconds for point in found], leave.why) == ([3.0] * 4, "limit")


# What is judged


def test_the_measure_of_classes_is_the_cross_entropy_of_the_softmax():
    toy = fit_rows.judge_for("softmax")
    scores = np.random.default_rng(0).normal(size=(len(toy.y), 3))
    expected = -np.log(scipy.special.softmax(scores, axis=1)[np.arange(len(toy.y)), toy.y]).mean()
    assert toy.value(lambda x: scores) == pytest.approx(expected)


def test_scores_as_a_vector_are_judged_as_a_column():
    toy = fit_rows.judge_for("logistic")
    flat = np.linspace(-1, 1, len(toy.y))
    assert toy.value(lambda x: flat) == toy.value(lambda x: flat[:, None])
    assert set(toy.measures(lambda x: flat)) == {"accuracy", "AUC", "log loss"}


def test_of_many_users_some_are_looked_at(monkeypatch):
    toy = fit_rows.judge_for("bpr")
    fields = toy.rows.facts["fields"]
    monkeypatch.setattr(cases, "SCORES", 5 * fields[1])
    users = np.unique(cases.some_users(toy.x, fields, 0).indices[::2])
    assert len(users) == 5


# Candidates


def targets_of_learning(case):
    """Return the targets of a case: what trains in one call, which compiles, has each model by a candidate."""
    name, model = case["name"], case["model"]
    is_in_one_call = name.startswith("ours") and ("in one call" in name or "dual" in name)
    return {name, ("in one call", model)} if is_in_one_call else {(name, model)}


@pytest.mark.covering(targets=targets_of_learning)
@pytest.mark.parametrize(("name", "model"), TRAINED)
def test_a_candidate_learns(name, model):
    candidate, toy = candidates.get(name), fit_rows.judge_for(model)
    if candidate.unavailable:
        pytest.skip(candidate.unavailable)
    if not toy.larger_is_better and models.get(model).rows_apart:  # so few rows that those held out say little
        toy = cases.Judge(toy.rows, toy.rows.x, toy.rows.y)
    if reason := candidate.why_not(toy.rows):
        pytest.skip(reason)
    tried = candidate.values(model)
    value = tried[-1 if "strength" in tried[0] else 5 if "C" in tried[0] else 2 if "schedule" in tried[0] else 0]
    if "batch_rows" in value:
        value = {**value, "batch_rows": 16, "rate": 0.3, "optimizer": "adagrad"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the library that it is
        if candidate.steps is not None:
            found = fit_rows.losses(toy, candidate.steps(toy.rows, value), 17)
        else:
            zeros = np.zeros((len(toy.y), toy.rows.width))
            found = np.array([toy.value(lambda x: zeros), toy.value(candidate.refit(toy.rows, value, 8)[0])])
    assert np.isfinite(found).all()
    trained = found[-1] - found[0]
    assert (trained >= 0 if toy.larger_is_better else trained < 0) or model in ("bpr", "pruned_mlp")


def test_ours_and_a_competitor_are_tried_with_as_many_settings():
    assert {len(candidates.get(name).values(model)) for name, model in TRAINED} == {candidates.TRIED}
    with pytest.raises(BenchError, match="tries 1 settings"):
        candidates.Candidate(
            "few", "competitor", ("logistic",), lambda model: [{"rate": 1.0}], lambda rows, value: iter(())
        )


def test_the_end_of_what_was_tried_is_told():
    candidate = candidates.get("ours, sparse")
    first, *_ = candidate.values("logistic")
    assert candidate.is_at_end("logistic", first)
    assert not candidate.is_at_end("logistic", {**first, "rate": 3.0})


def test_names_that_are_not_known_are_told_the_known():
    with pytest.raises(BenchError, match=r"there is: ours, sparse; .*ours, dense; .*liblinear"):
        candidates.list_candidates("logistic", ("nobody",))
    with pytest.raises(BenchError, match=r"the model x here; models are: .*softmax"):
        candidates.list_candidates("x")


def test_dense_trainings_of_ours_take_part_where_the_setup_is_possible():
    toy = fit_rows.judge_for("logistic")
    for name in ("epochs in one call", "dual ascent"):
        candidate = candidates.get(f"ours, dense, {name}")
        assert candidate.is_dense
        assert candidate.bytes_needed(toy.rows) == toy.rows.bytes_dense
        settings = project.EPOCHS_DENSE if "epochs" in name else project.DUAL
        setup = project.setup_for(toy.rows, candidate.values("logistic")[0], {"format": "dense", **settings})
        assert candidate.why_not(toy.rows) == impossible_reason(setup)
    made = project.setup_for(toy.rows, {"optimizer": "sgd", "rate": 1.0}, {"format": "dense", **project.EPOCHS_DENSE})
    assert (made.format, made.engine, made.gradient, made.update) == ("dense", "dense", "dense", "standard")
    assert made.execution == "epoch"


def test_dense_that_does_not_fit_says_the_bytes():
    toy = fit_rows.judge_for("logistic")
    found = child.refusal_columns(candidates.get("ours, dense"), toy.rows, 100)
    assert (found["status"], found["bytes_needed"]) == ("memory", 120 * 40 * 4)


def test_the_slice_for_warming_up_has_every_class(monkeypatch):
    monkeypatch.setattr(child, "ROWS_WARM", 1)
    assert set(child.slice_of(fit_rows.judge_for("softmax").rows).y) == {0, 1, 2}


def test_each_kind_of_setting_is_warmed_up_once():
    kinds = child.kinds_of(candidates.settings_by_rate("logistic"))
    assert [(kind["optimizer"], kind["batch_rows"]) for kind in kinds] == [
        ("sgd", 256),
        ("sgd", 1024),
        ("adagrad", 256),
    ]
    kinds = child.kinds_of(candidates.settings_by_decay("logistic"))
    assert [(kind["optimizer"], "decay" in kind) for kind in kinds] == [
        ("sgd", False),
        ("sgd", True),
        ("adagrad", False),
    ], "steps with decay have code of their own"
    assert len(child.kinds_of(candidates.get("scikit-learn SGDClassifier").values("logistic"))) == 2


def test_decay_of_a_setting_reaches_the_training_in_rows_that_are_up_to_date():
    rows, value = fit_rows.judge_for("logistic").rows, {"optimizer": "sgd", "batch_rows": 32, "rate": 0.5}
    for execution in ("step", "epoch"):
        chosen = {"format": "csr", "execution": execution}
        made = project.setup_for(rows, value | {"decay": 0.25}, chosen)
        assert (made.update, made.options, made.batch_rows) == ("exact", {"learning_rate": 0.5, "decay": 0.25}, 32)
        assert project.setup_for(rows, value, chosen).update == "lazy"
    assert (
        project.setup_for(rows, {"C": 2.0}, {"format": "csr", **project.DUAL}).options["decay"] == 0.5 / rows.x.shape[0]
    )


def test_pytorchs_intercept_has_no_decay():
    torch = pytest.importorskip("torch")
    b = torch.nn.ParameterDict({"b": torch.nn.Parameter(torch.ones(1))})
    module = torch.nn.ModuleDict({"w": torch.nn.Linear(2, 1, bias=False), "more": b})
    decayed, kept = torch_loop.parameters_of(module, 0.5)
    assert [len(decayed["params"]), len(kept["params"]), kept["weight_decay"]] == [1, 1, 0.0]
    assert kept["params"][0] is b["b"]


def test_a_class_that_only_rows_held_out_have_breaks_no_solver():
    toy = fit_rows.judge_for("softmax")
    y = np.where(toy.rows.y == 1, 0, toy.rows.y)
    refit = candidates.get("scikit-learn LogisticRegression lbfgs").refit
    scorer, _ = refit(dataclasses.replace(toy.rows, y=y), {"C": 1.0}, 50)
    assert scorer(toy.x).shape == (toy.x.shape[0], 3)
    assert np.isfinite(toy.value(scorer))
    assert scorer(toy.x).argmax(1).tolist().count(1) == 0


def test_nodes_held_out_keep_their_place_in_the_graph(tmp_path):
    settings = {"model": "graph_convolution", "dataset": "block_graph", "reading": "rows=60, features=20, classes=3"}
    whole = data.load("block_graph", rows=60, features=20, classes=3)
    found = cases.judge_of(cases.Case("toy", settings), 1)
    nodes = found.rows.facts["graph"]
    assert (found.rows.x.shape[0], found.x.shape[0], nodes.count) == (48, 12, 60)
    assert nodes.edges.nnz == whole.graph.nnz, "edges between both parts, too"
    assert (nodes.x[48:] != found.x).nnz == 0
    with pytest.raises(BenchError, match="holds out a share of the nodes"):
        cases.judge_of(cases.Case("toy", settings, str(tmp_path)), 1)


# The command


def test_the_command_lists_known_names_and_helps():
    for arguments, text in (
        (["--case", "x"], "power law, bpr"),
        (["--data", "no-such-data"], "Data sets: "),
        (["--data", "stdlib", "--model", "x"], "softmax"),
    ):
        found = CliRunner().invoke(app, ["fit", *arguments])
        assert text.split(", bpr")[0] in f"{found.output}{found.exception}", arguments
    assert "--held-out" in CliRunner().invoke(app, ["fit", "--help"], env={"COLUMNS": "200"}).output


def test_each_file_is_a_case_of_a_name_of_its_own(tmp_path, monkeypatch):
    found = []
    monkeypatch.setattr(suite, "Course", lambda run, case, *rest: found.append(case) or SimpleNamespace(records=list))
    paths = [tmp_path / folder / "rows.svm" for folder in ("small", "large")]
    for path in paths:
        path.parent.mkdir()
        path.write_text("1 3:1\n-1 2:1\n" * 8)
    run = Run(tables.FIT, tmp_path)
    assert list(suite.measure(run, data=list(map(str, paths)))) == []
    assert [case.name for case in found] == [f"{path}, logistic" for path in paths]
    assert [case.settings["path"] for case in found] == list(map(str, paths))
    found.clear()
    list(suite.measure(run, data=[str(paths[0])]))
    assert [case.name for case in found] == ["rows.svm, logistic"]
