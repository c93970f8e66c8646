"""Break-evens of libraries: bisection, results that must agree, the page, and operations of what is installed."""

import importlib.util
import tomllib
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from typer.testing import CliRunner

from benchmarks import libraries, tables
from benchmarks.harness import Run
from benchmarks.libraries import FILES, GRID, Operation, bisect, breakeven_of, difference, draw, operations_of, page
from benchmarks.shapes import BenchError
from benchmarks.suites import bench
from workbench.advising import breakevens

ROOT = Path(__file__).parents[2]
EVERY = [one for file in FILES for one in operations_of(file)]


def records(density, ratio, **more):
    """Records of both sides of one density whose times have this ratio dense / sparse in all rounds."""
    known = {
        "status": "ok",
        "density": density,
        "busy_others": 0.0,
        "key": "k",
        "case": "L: a",
        "note": "",
        "reason": "",
    }
    known |= {"library": "L", "version": "1", "operation": "a", "rows": 9, "features": 9, "threads": 1}
    times = {"sparse": 1.0, "dense": ratio}
    return {
        side: known | {"kind": side, "samples": [seconds] * 9, "seconds": seconds} | more
        for side, seconds in times.items()
    }


def breakeven_words(measured):
    return breakeven_of(measured).text


def listed(measured):
    return [record for both in measured for record in both.values()]


@pytest.mark.parametrize("true", [0.0001, 0.003, 0.0701, 0.4, 9.0])
@pytest.mark.parametrize("power", [0.5, 1.0])
def test_a_bisection_closes_in_on_the_break_even(true, power):
    measured = list(bisect(lambda density: records(density, (true / density) ** power)))
    assert len(measured) <= 5
    assert len({both["sparse"]["density"] for both in measured}) == len(measured)
    text = breakeven_words(listed(measured))
    if true < GRID[0]:
        assert text == "dense from 0.049 % on"
    elif true > 1:
        assert text == "sparse up to 100 %"
    else:
        numbers = [float(word) / 100 for word in text.replace("%", "").split() if word[0].isdigit()]
        assert text.startswith("dense from ")
        assert min(numbers) / 1.42 <= true <= max(numbers) * 1.42


def test_texts_where_there_is_no_break_even():
    assert breakeven_words(listed([records(0.1, 1.0), records(0.2, 1.0)])) == (
        "within 10 % of each other at all densities measured"
    )
    assert breakeven_words(listed([records(0.1, 2.0)])) == "measured at one density only"
    assert breakeven_words(listed([records(0.1, 2.0), records(0.2, 1.0)])) == "sparse up to 10 %; no winner up to 20 %"
    assert (
        breakeven_words(listed([records(0.1, 1.0), records(0.2, 0.5)])) == "dense from 20 % on; no winner from 10 % on"
    )
    lost = records(None, 1.0, status="failed", reason="no luck")
    assert breakeven_of(listed([lost])) is None
    assert len(list(bisect(lambda density: lost))) == 1


def test_the_page_has_a_line_an_operation_of_the_newest_key():
    old = listed([records(0.1, 9.0, key="old"), records(0.2, 9.0, key="old")])
    new = listed([records(0.1, 2.0), records(0.2, 0.5)])
    lost = listed([records(None, 1.0, case="L: b", status="unsupported", reason="not here")])
    made = page([*old, *new, *lost])
    assert [line[:4] for line in made.sections[0].rows] == [("L", "1", "a", "9 x 9")]
    assert made.sections[0].rows[0][4].startswith("dense from 1")
    assert made.sections[0].rows[0][5] == "1 s and 2 s at 10 %"
    assert made.sections[2].rows == [("L: b", "not here")]
    assert made.values["cases"] == 1


def test_what_the_package_shows_is_the_committed_record():
    shown = breakevens.measurement()
    folder = ROOT / "results" / shown.machine
    if not (folder / tables.LIBRARIES.file).exists():
        pytest.skip("a source distribution has no records")
    made = libraries.measurement_of(folder)
    assert made == shown
    assert breakevens.FILE.read_text(encoding="utf-8") == made.as_toml(), f"python -m benchmarks breakevens {folder}"
    assert len(shown.operations) == len(EVERY)


def test_break_evens_are_written_from_a_folder_of_records(tmp_path, monkeypatch):
    monkeypatch.setattr(breakevens, "FILE", tmp_path / "written.toml")
    refused = CliRunner().invoke(bench, ["breakevens", str(tmp_path)])
    assert refused.exit_code == 2
    run = Run(tables.LIBRARIES, tmp_path)
    about = {"candidate": "sparse", "version": "1", "operation": "a", "time": "2026-01-02T03:04:05+0000"}
    assert run.collect(one | about for one in listed([records(0.1, 2.0), records(0.2, 0.5)]))
    assert CliRunner().invoke(bench, ["breakevens", str(tmp_path)], catch_exceptions=False).exit_code == 0
    table = tomllib.loads((tmp_path / "written.toml").read_text(encoding="utf-8"))
    assert table["recorded"] == "2026-01-02"
    [one] = table["operations"]
    assert (one["library"], one["status"], one["lowest"], one["highest"]) == ("L", "crossing", 0.1, 0.2)
    assert 0.1 <= one["low"] <= one["density"] <= one["high"] <= 0.2


def test_results_are_compared_whatever_holds_them():
    x = np.eye(3)
    assert difference(x, scipy.sparse.csr_array(x)) == 0
    assert difference(2 * x, x) == 0.5
    assert difference(x, x[:2]) == float("inf")


def test_an_operation_whose_sides_differ_gets_no_time(monkeypatch, tmp_path):
    wrong = Operation("SciPy", "wrong", lambda data: (lambda: data.w, lambda: 2 * data.w), "scipy", rows=64, features=8)
    found = libraries.race_at(wrong, 0.1, 1, libraries.QUICK)
    assert found["sparse"]["status"] == "wrong"
    assert "Wrong against" in found["sparse"]["reason"]


def test_there_are_thirty_operations_of_eleven_libraries():
    assert len(EVERY) >= 30
    assert len({one.name for one in EVERY}) == len(EVERY)
    assert {one.library for one in EVERY} == {
        *("scikit-learn", "SciPy", "PyTorch", "TensorFlow", "Keras", "JAX", "XGBoost", "LightGBM", "implicit", "glum"),
        "pydata sparse",
    }


def test_data_are_the_same_for_the_same_density():
    one, again = (draw(EVERY[0], 0.1, 1) for _ in range(2))
    np.testing.assert_array_equal(one.dense, again.dense)
    np.testing.assert_array_equal(one.csr.toarray(), one.dense)
    assert 0.09 < one.csr.nnz / one.dense.size < 0.11
    assert set(one.y) == {0, 1}


@pytest.mark.filterwarnings("ignore")  # of libraries that stop after a few iterations
@pytest.mark.parametrize("file", ["scikit_learn", "scipy_sparse"])
def test_both_sides_of_every_operation_agree(file):
    for operation in operations_of(file):
        for density in (0.02, 0.5):
            sparse, dense = operation.make(draw(operation, density, 1))
            assert difference(dense(), sparse()) <= operation.allowed, operation.name


def test_operations_are_measured_in_a_process_and_kept(tmp_path, monkeypatch):
    names = ["SciPy: sum of each column", "implicit: 10 nearest items"]
    run = Run(tables.LIBRARIES, tmp_path, names, quick=True, threads=1)
    assert run.collect(libraries.measure(run))
    done = [record for record in run.records if record["library"] == "SciPy"]
    assert {record["status"] for record in done} == {"ok"}
    assert len({record["candidate"] for record in done}) == len(done) >= 4
    if importlib.util.find_spec("implicit") is None:
        (lacking,) = [record for record in run.records if record["library"] == "implicit"]
        assert lacking["reason"] == "implicit is not installed: pip install implicit."
        assert "implicit" in page(run.records).sections[2].rows[0][0]
    again = Run(tables.LIBRARIES, tmp_path, names, quick=True, threads=1)
    assert [record["library"] for record in libraries.measure(again)] == []
    with pytest.raises(BenchError, match="Unknown case"):
        list(libraries.measure(Run(tables.LIBRARIES, tmp_path, ["SciPy: nothing"])))
