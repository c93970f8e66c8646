"""What the suites share: folders of results, watched processes, and candidates that end their process."""

import pytest

from benchmarks import experiment, tables
from workbench.measure import race
from workbench.measure.child import Ended


def test_a_candidate_that_ends_its_process_has_a_record_and_the_others_are_measured_without_it():
    asked = []

    def answers(left_out):
        asked.append(left_out)
        for name in ("good", "bad"):
            if name in left_out:
                continue
            yield {"at": name}
            if name == "bad":
                raise Ended({"status": "memory", "reason": "too large", "bytes_limit": 9})
            yield {"name": name, "record": {"status": "ok"}}

    found = race.records_of_candidates(["good", "bad"], answers)
    assert asked == [[], ["bad"]]
    assert found == {"bad": {"status": "memory", "reason": "too large"}, "good": {"status": "ok"}}


def test_all_without_a_record_have_the_reason_if_no_candidate_was_at_work():
    def answers(left_out):
        yield {"at": "rows"}
        yield {"name": "first", "record": {"status": "ok"}}
        raise Ended({"status": "failed", "reason": "no rows"})

    found = race.records_of_candidates(["first", "second"], answers)
    assert found == {"first": {"status": "ok"}, "second": {"status": "failed", "reason": "no rows"}}


def test_records_have_time_machine_and_versions_and_a_stopped_run_keeps_them(tmp_path):
    results = experiment.Results(tables.END, tmp_path / "new")
    assert results.open() == []

    def work():
        results.append(key="a", status="ok")
        raise KeyboardInterrupt

    assert results.collect(work) is False
    (record,) = results.open()
    assert (record["key"], record["status"]) == ("a", "ok")
    assert record["time"]
    assert record["machine"]
    assert record["versions"]["numpy"]
    assert (tmp_path / "new" / experiment.MACHINE).exists()


@pytest.mark.parametrize(("printed", "is_kept"), [("", False), ("a warning", True)])
def test_a_log_in_which_nothing_was_printed_is_removed(tmp_path, printed, is_kept):
    results = experiment.Results(tables.END, tmp_path)
    results.open()
    (tmp_path / race.LOG).write_text(printed)
    assert results.collect(lambda: None) is True
    assert (tmp_path / race.LOG).exists() is is_kept


def test_a_worker_answers_and_is_ended_at_its_limit(tmp_path):
    worker = race.Worker("tests.support.children:two", tmp_path)
    answers = worker.answers({"seconds": 60}, lambda answer: 60.0 if answer is None else 0.2)
    assert next(answers) == {"number": 1}
    with pytest.raises(Ended) as ended:
        next(answers)
    assert race.end_columns(ended.value) == {"status": "timeout", "reason": "It took longer than 0.2 s."}
