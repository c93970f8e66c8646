"""The harness of all suites: what is known is skipped, candidates that end their process have records, pages."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from benchmarks import compare, contest, suites
from benchmarks.harness import MACHINE, Run, Suite, done_keys
from benchmarks.page import Page, Section, write
from benchmarks.shapes import BenchError
from benchmarks.tables import FAIR
from workbench import store
from workbench.measure import race

RESULTS = Path(__file__).parents[2] / "results"
POLICY = race.Policy(seconds_call=0.001, rounds=3, rounds_slow=3)
VALUES = compare.method([]) | {"dense": ""}
SIDES = {"right": "project", "other": "competitor", "wrong": "competitor", "bad": "competitor", "none": "competitor"}


@dataclass(frozen=True)
class Size:
    """A case: a sum of so many numbers."""

    rows: int
    ends: str = ""

    @property
    def name(self):
        return f"{self.rows} rows"

    def columns(self):
        return {"rows": self.rows, "density": 1.0}


def sums(settings, request):
    """The contest of a case: right and wrong sums; the candidate `ends` ends its process."""
    x = np.arange(settings["rows"], dtype=float)

    def made(name):
        def make():
            if name == settings["ends"]:
                raise SystemExit(7)
            if name == "bad":
                raise BenchError("It cannot.")
            return contest.Ready(x.sum, lambda got: abs(got - sum(x)) + (name == "wrong"))

        return lambda _: contest.prepare(make, POLICY, 1e-6, unavailable="It is not there." * (name == "none"))

    finish = lambda name, record: record | {"batches": len(name)}  # noqa: E731
    return contest.Contest({"nnz": len(x)}, {name: made(name) for name in SIDES}, finish)


def measure(run, quick=(), ends=""):
    cases = run.choose([Size(10, ends), Size(20)], quick=[Size(20)])
    named = {name: {"side": side} for name, side in SIDES.items()}
    yield from run.contests(
        cases,
        "tests.benchmarks.test_harness:sums",
        lambda case: named,
        POLICY,
        roots=lambda case: {"benchmarks.contest"},
    )


def by_case(run):
    found = {}
    for record in run.records:
        found.setdefault(record["case"], {})[record["candidate"]] = record
    return found


def test_every_candidate_has_a_record_and_what_is_known_is_not_measured_again(tmp_path):
    run = Run(FAIR, tmp_path, threads=1)
    assert run.collect(measure(run))
    assert list(by_case(run)) == ["10 rows", "20 rows"]
    records = by_case(run)["10 rows"]
    status = {name: record["status"] for name, record in records.items()}
    assert status == {"right": "ok", "other": "ok", "wrong": "wrong", "bad": "unsupported", "none": "unsupported"}
    assert records["wrong"]["seconds"] is None
    assert records["wrong"]["error"] == 1
    assert (records["bad"]["reason"], records["none"]["reason"]) == ("It cannot.", "It is not there.")
    right = records["right"]
    assert (right["side"], right["nnz"], right["batches"], right["rows"], right["threads"]) == ("project", 10, 5, 10, 1)
    assert len(right["samples"]) == 3
    assert all(right[name] for name in ("key", "time", "machine", "source", "calls"))
    assert right["versions"]["numpy"]
    assert (tmp_path / MACHINE).exists()
    again = Run(FAIR, tmp_path, threads=1)
    assert again.collect(measure(again))
    assert again.records == run.records
    assert len(FAIR.read(tmp_path)) == 10


def test_a_candidate_that_ends_its_process_has_a_record_and_the_others_are_measured_without_it(tmp_path):
    run = Run(FAIR, tmp_path, ["10 rows"], threads=1)
    assert run.collect(measure(run, ends="other"))
    records = by_case(run)["10 rows"]
    assert records["other"]["status"] == "failed"
    assert records["right"]["status"] == "ok"
    assert set(records) == set(SIDES)
    assert not done_keys(run.records)  # what failed is tried again


def test_all_candidates_say_why_if_no_candidate_was_at_work(tmp_path):
    run = Run(FAIR, tmp_path, threads=1)
    found = run.contests(
        [Size(10)], "benchmarks.contest" + ":missing", lambda case: {"a": {}, "b": {}}, POLICY, roots=lambda case: set()
    )
    assert {(one["candidate"], one["status"]) for one in found} == {("a", "failed"), ("b", "failed")}


def test_what_needs_too_much_memory_is_not_begun(tmp_path):
    @dataclass(frozen=True)
    class Large(Size):
        bytes_needed: int = 2**60

    run = Run(FAIR, tmp_path, threads=1)
    named = {name: {"side": "project"} for name in SIDES}
    found = list(run.contests([Large(10)], "nowhere:nothing", lambda case: named, POLICY, roots=lambda case: set()))
    assert {one["status"] for one in found} == {"memory"}
    assert "Needs 1152921504606846976 bytes" in found[0]["reason"]


def test_cases_are_chosen_by_name_or_quick_and_a_wrong_name_lists_all(tmp_path):
    cases = [Size(1), Size(2)]
    assert Run(FAIR, tmp_path, ["2 rows"]).choose(cases) == [Size(2)]
    assert Run(FAIR, tmp_path, quick=True).choose(cases, quick=cases[:1]) == cases[:1]
    with pytest.raises(BenchError, match=r"Unknown case '3 rows'\. .*Expected one of: 1 rows, 2 rows"):
        Run(FAIR, tmp_path, ["3 rows"]).choose(cases)
    with pytest.raises(BenchError, match="threads is 9999; this process can use 1 to"):
        Run(FAIR, tmp_path, threads=9999)


def test_a_stopped_run_keeps_its_records_and_a_silent_log_is_removed(tmp_path):
    def stopped():
        yield {"key": "a", "status": "ok"}
        raise KeyboardInterrupt

    run = Run(FAIR, tmp_path)
    assert run.collect(stopped()) is False
    (record,) = FAIR.read(tmp_path)
    assert record["key"] == "a"
    for printed in ("", "a warning"):
        (tmp_path / race.LOG).write_text(printed)
        assert run.collect([]) is True
        assert (tmp_path / race.LOG).exists() is bool(printed)


def timed(candidate, side, samples, key="k", **more):
    middle = float(np.median(samples))
    own = {"case": "c", "machine": "m", "threads": 1, "status": "ok", "seconds": middle, "samples": samples, "note": ""}
    return FAIR.new_row(candidate=candidate, side=side, key=key, **own | more)


def test_a_ratio_is_of_the_fastest_of_both_sides_by_the_posterior_of_their_rounds():
    records = [
        timed("old", "project", [9.0] * 4, key="old"),
        timed("slow", "project", [3.0] * 2),
        timed("fast", "project", [2.0, 2.2, 1.8, 2.0]),
        timed("other", "competitor", [1.0, 1.1, 0.9, 1.0], note="smaller"),
        timed("broken", "competitor", [0.1], status="failed", reason="It broke."),
    ]
    (one,) = found = compare.newest(records)
    ratio = one.ratio({"side": "project"}, {"side": "competitor"})
    assert ratio.value == pytest.approx(2.0, rel=0.02)
    assert 1 < ratio.low < ratio.value < ratio.high
    assert ratio.probability > 0.99
    assert one.ratio({"side": "project"}, {"side": "nobody"}) is None
    assert compare.untimed(found) == [["broken", "failed", "It broke.", "1"]]
    assert compare.notes(found) == [["other", "smaller"]]
    assert compare.method(found)["rounds"] == "4"


def test_a_target_is_met_missed_or_not_measured():
    assert compare.target("t", {}, most=1)[1:] == ("≤ 1", "not measured", None)
    assert compare.target("t", {"a": 1.0, "b": None}, most=1)[1:] == ("≤ 1", "1 (a)", True)
    assert compare.target("t", {"a": 2.0, "b": 4.0}, least=3)[1:] == ("≥ 3", "2 (a); 1 of 2 below", False)
    assert compare.target("t", {"a": 2.0, "b": 8.0}, least=4, is_mean=True)[1:] == ("≥ 4", "4 over 2 cases", True)


def test_a_page_has_targets_tables_charts_and_the_command(tmp_path):
    def draw(figure):
        figure.add_subplot().plot([1, 2])
        return "It rises."

    sections = [Section("Cases | all", ("a", "b"), [["1", "x | y"]]), Section("Nothing", ("a",), [])]
    sections.append(Section("Chart", file="chart.svg", draw=draw))
    content = Page(
        [compare.target("t", {"a": 2.0}, most=1)], sections, ["One line."], compare.method([]) | {"dense": ""}
    )
    suite = Suite("fair", FAIR, measure, lambda records: content)
    FAIR.append(tmp_path / FAIR.file, timed("a", "project", [1.0]))
    text = write(suite, tmp_path, "python -m benchmarks fair").read_text()
    assert "**0 of 1 measured targets are met.**" in text
    assert "| t | ≤ 1 | 2 (a) | missed |" in text
    assert "One line." in text
    assert "## Cases \\| all" in text
    assert "| 1 | x \\| y |" in text
    assert "![Chart](chart.svg)\n\nIt rises." in text
    assert "Nothing" not in text
    assert text.rstrip().endswith("```\npython -m benchmarks fair\n```")
    assert (tmp_path / "chart.svg").stat().st_size > 1000


STORED = [(name, path) for name, one in suites.SUITES.items() for path in sorted(RESULTS.glob(f"*/{one.table.file}*"))]


@pytest.mark.covering(targets=lambda case: {case["name"]})
@pytest.mark.parametrize(("name", "path"), STORED, ids=[f"{name}-{path.parent.name}" for name, path in STORED])
def test_the_page_of_stored_records_is_what_is_stored(name, path, tmp_path):
    suite = suites.SUITES[name]
    for file in (path, path.with_name(MACHINE)):
        shutil.copy(file, tmp_path)
    made = write(suite, tmp_path).read_text().splitlines()
    kept = path.with_name(suite.page_file).read_text().splitlines()
    assert [line for line in made if line.startswith("|")] == [line for line in kept if line.startswith("|")]
    assert store.is_stored(tmp_path / suite.table.file)
