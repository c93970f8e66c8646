"""Advice inside a framework: every way trains as the definition says, its lines run, the answer follows the times."""

import importlib.util
import json
import math
import types

import numpy as np
import pytest
import scipy.sparse
from typer.testing import CliRunner

import workbench as wb
from workbench import data
from workbench.advising import breakevens, frameworks
from workbench.advising.frameworks import FRAMEWORKS, _conclude, answer_for
from workbench.advising.frameworks import ways as problems
from workbench.advising.frameworks.training import prepare_candidate
from workbench.advising.frameworks.ways import get, names, problem_of, ways_of
from workbench.advising.source import suggest_model
from workbench.analysis.formatting import format_density
from workbench.command import cli
from workbench.measure.race import Policy
from workbench.settings import train_command
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
        SpecError, match=r"Unknown framework 'mxnet'\. Expected one of: pytorch, tensorflow, keras, jax, sklearn"
    ):
        ways_of("mxnet")


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
@pytest.mark.covering(targets=lambda case: {case["name"], case["classes"]})
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", names())
def test_the_lines_to_paste_run(name, classes):
    way, made = get(name), problem(get(name).framework, classes)
    if reason := way.unavailable(made):
        pytest.skip(reason)
    if "compile" in name:
        pytest.skip("compiling takes half a minute, and the lines are those of the way before it")
    lines = way.lines(made).replace("epochs = 10\n", "epochs = 1\n")
    x = scipy.sparse.csr_array(made.csr)
    for given, y in (
        (x, made.labels),
        (x.astype(np.float64).tocsc(), np.array(["red", "green", "blue"])[made.labels].tolist()),
        (scipy.sparse.csr_matrix(x), 2 * made.labels - 1),
    ):
        scope = {"x": given, "y": y}
        exec(compile(lines, name, "exec"), scope)
        if way.framework != "sklearn":
            assert (scope["classes"][np.asarray(scope["y"])] == np.asarray(y)).all()


def written(kind, folder) -> tuple[str, dict[str, str]]:
    """The path of a file with labels of that kind, in a folder with a space and a quote, and how it is read."""
    path = folder / 'user\'s "own" files' / f"{kind}.txt"
    path.parent.mkdir()
    rows = range(120)
    text = {
        "csv": "answer,site,price\n" + "".join(f"{('yes', 'no')[row % 2]},s{row % 7},{row % 3}.5\n" for row in rows),
        "svmlight": "".join(f"{(2, 5, 9)[row % 3]} {1 + row % 3}:1 {4 + row % 8}:0.5\n" for row in rows),
        "regression": "".join(f"{row % 17 + 0.25} {1 + row % 3}:1 {4 + row % 8}:0.5\n" for row in rows),
        "multilabel": "".join(f"{row % 3},{3 + row % 2} {1 + row % 3}:1 {6 + row % 8}:0.5\n" for row in rows),
        "ratings": "user,item,rating\n" + "".join(f"u{row % 11},i{row % 13},{1 + row % 5}\n" for row in rows),
    }[kind]
    path.write_text(text)
    read = {"csv": {"label": "answer"}, "ratings": {"dataset": "ratings"}}
    return str(path), read.get(kind, {})


FILES = ("csv", "svmlight", "regression", "multilabel", "ratings")


@pytest.mark.filterwarnings("ignore")  # of frameworks about their own code, such as sparse tensors in beta state
@pytest.mark.parametrize("framework", ["pytorch", "sklearn"])
@pytest.mark.parametrize("kind", FILES)
def test_the_lines_printed_for_a_file_load_it_and_train(kind, framework, tmp_path, monkeypatch, capsys):
    path, read = written(kind, tmp_path)
    if importlib.util.find_spec(FRAMEWORKS[framework][0]) is None:
        pytest.skip(f"needs {framework}")

    def conclude(request, ways, *_):
        return {way.name: {"status": "ok", "reason": "", "seconds": 1.0, "samples": [1.0, 1.0]} for way in ways[::-1]}

    monkeypatch.setattr(frameworks, "_measure_ways", conclude)
    if kind in ("regression", "multilabel", "ratings"):
        with pytest.raises(SpecError, match="needs one class for each row"):
            wb.advise(path, framework=framework, **read)
        return
    words = [word for name, value in read.items() for word in (f"--{name}", value)]
    came = CliRunner().invoke(cli.app, ["advise", path, "--for", framework, *words], catch_exceptions=False)
    printed = came.stdout.partition("Lines to paste\n")[2]
    advice = wb.advise(path, framework=framework, **read)
    for lines in (printed, advice.code, str(advice).partition("Lines to paste:\n\n")[2]):
        scope = {}
        exec(compile(lines.replace("epochs = 10\n", "epochs = 1\n"), framework, "exec"), scope)
        assert scope["dataset"].rows == 120
        assert "model" in scope


@pytest.mark.parametrize("kind", FILES)
def test_the_code_of_advice_trains_on_the_same_data(kind, tmp_path, monkeypatch):
    """Its path was written between quotes as it is, and how the file was read was left out."""
    from workbench.api import advice

    path, read = written(kind, tmp_path)
    loaded = advice.receive(path, None, read.get("label"), {name: read[name] for name in read if name != "label"})
    known = types.SimpleNamespace(verdict="none", settings={})
    settings = {"model": suggest_model(loaded.dataset)}
    command = train_command({**loaded.settings, **settings, "threads": 1, "epochs": 1})
    answer = types.SimpleNamespace(settings=settings, command=command, recommendation=known, folder=tmp_path / "none")
    made = advice.Advice(answer, loaded)
    scope = {}
    exec(compile(made.code, kind, "exec"), scope)
    assert ("wb.train" in made.code) == (kind not in ("multilabel", "ratings")), "the others have no estimator"
    if "wb.train" not in made.code:
        with pytest.raises(ValueError, match=r"no estimator (has|takes); expected one of: .*softmax\.\nType workbench"):
            made.fit()
        return
    x = loaded.dataset.x
    assert len(scope["model"].predict(x)) == loaded.dataset.rows
    if kind == "csv":
        assert set(scope["model"].predict(x)) == {"yes", "no"}


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


def test_break_evens_measured_elsewhere_follow_the_answer():
    result = concluded(dense=400e-6, sparse=200e-6, ours=80e-6)
    text = str(result)
    assert text.index("measured elsewhere, not on your rows") > text.index("Timed on")
    assert f"Your rows have a density of {format_density(result.density, 2)}." in text
    operations = [one for one in breakevens.measurement().operations if one.library == "PyTorch"]
    assert len(operations) >= 4
    for one in operations:
        assert f"  {one.operation} ({one.version}, 4,096 x 512): {one.text}" in text.splitlines()
    as_json = json.loads(json.dumps(result.as_json(), allow_nan=False))
    assert [one["operation"] for one in as_json["measured_elsewhere"]["operations"]] == [
        one.operation for one in operations
    ]
    assert as_json["density"] == result.density


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_framework_has_break_evens(framework):
    found = breakevens.measurement().of(FRAMEWORKS[framework][1])
    assert found.operations
    heading, *lines = found.lines()
    assert found.cpu in heading
    assert "Your rows" not in heading
    assert len(lines) == len(found.operations)
    assert breakevens.measurement().of("theano").lines(0.1) == []


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
    assert "EmbeddingBag of width 64 (" in shown.output
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
    assert "<li>EmbeddingBag of width 64 (" in result._repr_html_()
    table = result.breakevens.set_index("operation")
    assert set(table["library"]) == {"PyTorch"}
    row = table.loc["EmbeddingBag of width 64"]
    assert 0 < row["low"] < row["density"] < row["high"] < 1
    assert row["text"].startswith("dense from ")
    assert str(result).startswith("In PyTorch use")
    with pytest.raises(ValueError, match="needs labels"):
        wb.advise(made.x, framework="pytorch")
