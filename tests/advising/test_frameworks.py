"""Advice inside a framework: every way trains as the definition says, its lines run, the answer follows the times."""

import importlib.util
import json
import math

import numpy as np
import pytest
import scipy.sparse
from typer.testing import CliRunner

import workbench as wb
from workbench import data
from workbench.advising import frameworks
from workbench.advising.frameworks import FRAMEWORKS, _conclude, answer_for
from workbench.advising.frameworks import ways as problems
from workbench.advising.frameworks.training import prepare_candidate
from workbench.advising.frameworks.ways import get, names, problem_of, ways_of
from workbench.command import cli
from workbench.measure.race import Policy
from workbench.sweeps.spec import SpecError

QUICK = Policy(seconds_call=0.001, rounds=1)


def drawn(classes=2, rows=90):
    return data.load("uniform", rows=rows, features=40, density=0.2, classes=classes, seed=1, cache=False)


def problem(framework, classes=2, **options):
    return problem_of(drawn(classes), 1 if framework == "sklearn" else 32, threads=1, **options)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_framework_has_its_dense_way_its_sparse_way_and_ours(framework):
    found = ways_of(framework)
    assert {(way.kind, way.side) for way in found} == {
        ("dense", "independent"),
        ("sparse", "independent"),
        ("sparse", "project"),
    }


def test_an_unknown_framework_is_refused_with_the_known_ones():
    with pytest.raises(
        SpecError, match=r"Unknown framework 'jax'\. Expected one of: pytorch, tensorflow, keras, sklearn"
    ):
        ways_of("jax")


@pytest.mark.filterwarnings("ignore")  # of frameworks about their own code, such as sparse tensors in beta state
@pytest.mark.covering(targets=lambda case: {case["name"], (get(case["name"]).framework, case["classes"])})
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.exhaustive if "compile" in name else ()) for name in names()]
)
def test_every_way_trains_as_the_definition_says(name, classes):
    way, made = get(name), problem(get(name).framework, classes)
    if reason := way.unavailable(made):
        pytest.skip(reason)
    record, _ = prepare_candidate(way, made, QUICK, lambda: 0.0)
    assert record["status"] == "ok", record
    assert record["error"] <= record["error_allowed"]


@pytest.mark.filterwarnings("ignore")  # of frameworks about their own code, such as sparse tensors in beta state
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", names())
def test_the_lines_to_paste_run(name, classes):
    way, made = get(name), problem(get(name).framework, classes)
    if reason := way.unavailable(made):
        pytest.skip(reason)
    if "compile" in name:
        pytest.skip("compiling takes half a minute, and the lines are those of the way before it")
    scope = {"x": scipy.sparse.csr_array(made.csr), "y": made.labels, "epochs": 1}
    exec(compile(way.lines(made), name, "exec"), scope)


def test_rows_come_back_from_the_folder_as_they_were(tmp_path):
    made = problem("pytorch")
    request = problems.save(made, tmp_path) | {"threads": 1}
    again = problems.read(json.loads(json.dumps(request)))
    assert (again.csr != made.csr).nnz == 0
    np.testing.assert_array_equal(again.dense, made.dense)
    np.testing.assert_array_equal(again.labels, made.labels)
    assert (again.rate, again.sizes) == (made.rate, made.sizes)


def test_long_rows_are_trained_with_shorter_steps():
    longer = drawn()
    longer = data.take(longer, np.arange(longer.rows))
    longer.x.data *= 100
    assert problem_of(longer, 32, 1).rate < 1e-3 < problem("pytorch").rate <= 0.5


def test_labels_that_are_no_classes_are_refused():
    made = data.load("uniform", rows=60, features=30, density=0.2, classes=None, cache=False)
    assert made.kind == "numbers"
    with pytest.raises(SpecError, match="needs one class for each row"):
        problem_of(made, 32, 1)


def concluded(dense, sparse, ours, **options):
    """The answer for PyTorch from these seconds a batch, in four rounds."""
    names = ("PyTorch dense, eager", "PyTorch EmbeddingBag, sparse gradient", "SparseLinear and LazySGD")
    noise = np.array([1, 1.02, 0.99, 1])
    records = {
        name: {"status": "ok", "reason": "", "seconds": seconds, "samples": [*seconds * noise]}
        for name, seconds in zip(names, (dense, sparse, ours), strict=True)
        if seconds is not None
    }
    return _conclude("pytorch", ways_of("pytorch"), records, problem("pytorch", **options), 9.0)


def test_the_fastest_way_is_recommended_with_ratio_memory_and_lines():
    result = concluded(dense=400e-6, sparse=200e-6, ours=80e-6)
    assert result.best.name == "SparseLinear and LazySGD"
    assert result.ratio.value == pytest.approx(5, rel=0.1)
    assert result.headline.startswith("In PyTorch use SparseLinear and LazySGD: 5 (95 %: ")
    assert "times less memory" in result.headline
    assert "from workbench.bridges.pytorch import LazySGD, SparseLinear" in result.best.lines
    assert "PyTorch torch.sparse, CSR: It was not reached within the budget." in result.lines_of_ways
    as_json = json.loads(json.dumps(result.as_json(), allow_nan=False))
    assert as_json["side"] == "sparse"
    assert as_json["dense_over_sparse"]["low"] < 5 < as_json["dense_over_sparse"]["high"]


def test_dense_is_recommended_where_it_is_faster():
    result = concluded(dense=50e-6, sparse=200e-6, ours=100e-6)
    assert result.headline.startswith("In PyTorch stay dense, with PyTorch dense, eager: 2 (95 %: ")
    assert "faster than SparseLinear and LazySGD" in result.headline


def test_dense_rows_that_do_not_fit_say_so():
    result = concluded(dense=None, sparse=200e-6, ours=100e-6, bytes_dense=0)
    assert "no dense way runs here" in result.headline
    assert result.ratio is None
    assert len(problem("pytorch", bytes_dense=0).dense) == 0
    reason = ways_of("pytorch")[0].unavailable(problem("pytorch", bytes_dense=0))
    if importlib.util.find_spec("torch"):
        assert "X as a dense array takes" in reason


def test_nothing_timed_is_an_error_with_the_reasons():
    with pytest.raises(SpecError, match=r"No way of PyTorch could be timed\.\nPyTorch dense, eager: "):
        concluded(None, None, None)


def test_a_framework_that_is_not_installed_is_refused_with_what_to_type(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SpecError, match=r"TensorFlow is not installed here\.\nType: pip install"):
        answer_for("tensorflow", drawn())


def test_scikit_learn_is_measured_and_answered():
    result = answer_for("sklearn", drawn(rows=400), budget=60.0, threads=1)
    assert result.best.name in {way.name for way in ways_of("sklearn")}
    assert result.batch_rows == 1
    assert sum(math.isfinite(way.seconds) for way in result.ways) == 3, [way.reason for way in result.ways]


def test_the_command_prints_the_answer_or_json(monkeypatch, tmp_path):
    asked = []

    def answered(framework, dataset, **given):
        asked.append((framework, dataset.rows, given["budget"], given["batch_rows"]))
        return concluded(400e-6, 200e-6, 80e-6)

    monkeypatch.setattr(frameworks, "answer_for", answered)
    path = tmp_path / "rows.txt"
    path.write_text("".join(f"{row % 2} 1:1 {2 + row % 5}:2\n" for row in range(60)))
    shown = CliRunner().invoke(cli.app, ["advise", str(path), "--for", "pytorch"], catch_exceptions=False)
    assert shown.exit_code == 0
    assert "In PyTorch use SparseLinear and LazySGD" in " ".join(shown.output.split())
    assert "optimizer = LazySGD" in shown.output
    words = ["advise", str(path), "--for", "pytorch", "--budget", "30", "--batch-rows", "16", "--json"]
    came = CliRunner().invoke(cli.app, words, catch_exceptions=False)
    assert json.loads(came.stdout)["recommended"] == "SparseLinear and LazySGD"
    assert asked == [("pytorch", 60, 120.0, None), ("pytorch", 60, 30.0, 16)]


def test_python_has_the_same_answer(monkeypatch):
    monkeypatch.setattr(frameworks, "answer_for", lambda *given, **more: concluded(400e-6, 200e-6, 80e-6))
    made = drawn()
    result = wb.advise(made.x, made.y, framework="pytorch")
    assert (result.side, result.best) == ("sparse", "SparseLinear and LazySGD")
    assert result.ratio[1] < result.ratio[0] < result.ratio[2]
    assert "LazySGD" in result.code
    assert result.table["name"].iloc[0] == "PyTorch dense, eager"
    assert "In PyTorch use" in result._repr_html_()
    assert str(result).startswith("In PyTorch use")
    with pytest.raises(ValueError, match="needs labels"):
        wb.advise(made.x, framework="pytorch")
