"""What a user waits for: candidates called in turn, parts on small data, targets."""

import math

import numpy as np
import pytest

from benchmarks import compare, tables, waits_suite
from benchmarks import waits as suite
from benchmarks.harness import Run
from benchmarks.shapes import BenchError
from workbench import training
from workbench.training.setup import impossible_reason


@pytest.fixture
def request_of(tmp_path):
    return suite.Request(tmp_path / "files", is_quick=True, seed=0)


def record(part, case, candidate, samples, loss=None, **more):
    side = "project" if candidate == "project" else "competitor"
    known = {"key": more.pop("key", part), "part": part, "case": case, "candidate": candidate}
    known |= {"side": side, "samples": samples, "loss": loss}
    times = dict.fromkeys(("seconds", "seconds_low", "seconds_high"), sorted(samples)[len(samples) // 2])
    return tables.WAITS.new_row(**known | times | {"status": "ok"} | more)


def test_candidates_are_called_in_turn_after_a_first_call_whose_results_are_compared():
    called = []
    calls = {"project": lambda: called.append("p") or 1, "other": lambda: called.append("o") or 2}
    own, other = suite.rounds_of("case", calls, 4, lambda one, two: f"{one} is not {two}")
    assert "".join(called) == "po" + "po" + "op" + "op" + "po"
    assert (own["status"], own["reason"], other["status"]) == ("wrong", "1 is not 2", "ok")
    assert (len(own["samples"]), len(other["samples"])) == (4, 4)


def test_each_form_of_text_is_read_alike_by_the_project_and_the_library(request_of, monkeypatch):
    monkeypatch.setattr(suite, "one_core", suite.contextmanager(lambda: iter([None])))
    pytest.importorskip("pyarrow")
    found = list(suite.reading(request_of))
    assert {one["case"] for one in found} == {f"{name}, 2 MB" for name in suite.READERS}
    assert {one["status"] for one in found} == {"ok"}


def test_a_value_that_is_read_wrong_is_an_error(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 1:1 2:3\n0 2:1\n")
    own, other = suite._load(path), suite._load_svmlight(path)
    assert suite._same_data(own, other) == ""
    other.data[0] = 5
    assert "sum" in suite._same_data(own, other)


@pytest.mark.parametrize("part", ["predicting", "few_rows", "searching", "defaults"])
def test_a_part_times_both_candidates_of_each_case_as_often(part, request_of, monkeypatch):
    monkeypatch.setattr(suite, "PREDICTED", ((500, 2_000, 20),))
    monkeypatch.setattr(suite, "SEARCHED", ((600, 500, 20),))
    found = list(suite.PARTS[part](request_of))
    assert {one["status"] for one in found} == {"ok"}
    for case in {one["case"] for one in found}:
        own, other = (one for one in found if one["case"] == case)
        assert (own["side"], other["side"]) == ("project", "competitor")
        assert len(own["samples"]) == len(other["samples"]) > 0


def test_nothing_set_predicts_about_as_well_as_the_best_strength(request_of):
    own, other = suite.defaults(request_of)
    assert own["loss"] < math.log(2)
    assert own["loss"] < 1.1 * other["loss"]


def test_own_files_of_two_classes_are_sets_too(request_of, tmp_path, monkeypatch):
    monkeypatch.setattr(suite, "SYNTHETIC_SIZES", ())
    x, y = suite.synthetic(300, 20, 5, seed=1)
    (tmp_path / "data").mkdir()
    lines = [f"{label} " + " ".join(f"{j + 1}:1" for j in x[[i]].indices) for i, label in enumerate(y)]
    (tmp_path / "data" / "own.svm").write_text("\n".join(lines) + "\n")
    own, _ = suite.defaults(request_of)
    assert own["case"] == "own.svm"
    (tmp_path / "data" / "own.svm").write_text("1 1:1\n2 2:1\n3 1:1\n")
    with pytest.raises(BenchError, match="3 classes; expected a file of two"):
        list(suite.defaults(request_of))


def test_starting_times_whole_processes_and_a_command_that_fails_is_an_error(request_of, monkeypatch, tmp_path):
    monkeypatch.setattr(suite, "STARTS", {"import workbench": suite.STARTS["import workbench"]})
    monkeypatch.setattr(suite, "_first_step", lambda *given: iter(()))
    own, other = suite.starting(request_of)
    assert len(own["samples"]) == len(other["samples"]) > 1
    assert min(*own["samples"], *other["samples"]) > 1e-3, "no process of Python starts in less"
    with pytest.raises(BenchError, match="ended with status 3"):
        suite._process(("-c", "raise SystemExit(3)"), tmp_path, {})


@pytest.mark.parametrize(
    "settings", [settings for _, settings in suite.COMPILED], ids=[name for name, _ in suite.COMPILED]
)
def test_a_first_epoch_is_of_settings_that_go_together(settings, monkeypatch):
    reached = []
    monkeypatch.setattr(training, "make_run", lambda setup, *given: reached.append(setup) or NoRun())
    assert suite.first_epoch(settings) >= 0
    assert [impossible_reason(setup) for setup in reached] == [""]


class NoRun:
    def epoch(self, number):
        return iter(())


def test_a_first_epoch_trains():
    assert suite.first_epoch(dict(suite.COMPILED)["csr, logistic, AdaGrad"]) > 0


def test_synthetic_rows_have_the_same_labels_for_a_seed_and_both_classes():
    x, y = suite.synthetic(500, 100, 7, seed=3)
    again, labels = suite.synthetic(500, 100, 7, seed=3)
    assert np.array_equal(y, labels)
    assert (x != again).nnz == 0
    assert 0.2 < y.mean() < 0.8
    assert x.sum(axis=1).max() <= 7


def test_targets_name_the_worst_case_and_a_newer_record_replaces_an_older_one():
    records = [
        record("predicting", "a", "project", [9.0], key="old"),
        record("predicting", "a", "project", [2.0, 2.0]),
        record("predicting", "a", "SciPy", [2.0, 1.0]),
        record("predicting", "b", "project", [1.0]),
        record("predicting", "b", "SciPy", [1.0]),
        record("defaults", "c", "project", [1.0], loss=0.52),
        record("defaults", "c", "LogisticRegression", [2.0], loss=0.5),
        record("starting", "import workbench", "project", [0.04]),
        record("starting", "import workbench", "python", [0.02]),
        record("compiling", "csr, logistic, SGD", "project", [5.0]),
        record("reading", "", "project", [1.0], status="failed", reason="no luck", seconds=None),
    ]
    page = waits_suite.page(records)
    targets = {target.what: target for target in page.targets}
    products = targets["scores, probabilities / SciPy's x @ w"]
    assert (products.measured, products.met) == ("1.5 (a); 1 of 2 above", False)
    assert targets["held-out loss, nothing set / best LogisticRegression"].measured == "1.04 (c)"
    assert targets["time, nothing set / LogisticRegression, C = 1"].met
    assert targets["import workbench above the interpreter"].met
    assert targets["first epoch, any other"].measured == "5 s (csr, logistic, SGD)"
    assert targets["first epoch, csr, logistic, AdaGrad"].met is None
    assert ["reading", "", "project", "failed", "no luck"] in list(page.sections[-1].rows)
    assert waits_suite.line(compare.newest(records)[0])[:4] == ["predicting", "a", "2 s", "SciPy"]


def test_a_part_runs_in_a_process_and_what_is_measured_is_kept(tmp_path, monkeypatch):
    run = Run(tables.WAITS, tmp_path, ["few_rows"], quick=True, threads=1)
    assert run.collect(waits_suite.measure(run))
    assert {one["status"] for one in run.records} == {"ok"}
    assert {one["case"] for one in run.records} == {"fit of 100 rows, one epoch", "fit of 100 rows, nothing set"}
    again = Run(tables.WAITS, tmp_path, ["few_rows"], quick=True, threads=1)
    assert list(waits_suite.measure(again)) == []
    with pytest.raises(BenchError, match=r"Unknown case 'readings'\. Did you mean 'reading'\?"):
        list(waits_suite.measure(Run(tables.WAITS, tmp_path, ["readings"])))
