"""Kernels and steps: what is right gets a time, what is wrong a reason, and no candidate is lost."""

import dataclasses
import functools

import numpy as np
import pytest

import kernels
from benchmarks import (
    candidates,
    configurations,
    contest,
    kernel_contest,
    kernel_suites,
    steps,
    steps_of_user_code,
    tables,
)
from benchmarks.candidates import Ready, Traffic
from benchmarks.configurations import BenchmarkConfiguration, Entry, Field
from benchmarks.harness import Run
from benchmarks.kernel_suites import configurations_of
from benchmarks.shapes import BenchError, Shape
from kernels import Cost
from tests.support.cases import CASES
from workbench.measure import race
from workbench.measure.bandwidth import Bandwidth, Limits

TINY = Shape("tiny", 40, 300, 6, sigma=0.5, slope=1.0)
QUICK = race.Policy(seconds_call=0.0, rounds=3, rounds_least=1)


@pytest.fixture(autouse=True)
def no_settling(monkeypatch):
    monkeypatch.setattr(kernel_contest, "SECONDS_SETTLE", 0.0)
    monkeypatch.setattr(kernel_contest, "SECONDS_WARMUP", 0.0)


def measure(field, bytes_limit=10**9, limits=None, timer=None):
    """Records by name of the candidates of a configuration, measured in this process."""
    found = kernel_contest.contest_of(field, QUICK, bytes_limit, limits, timer)
    sides = {entry.name: {"candidate": entry.name, "side": entry.side} for entry in field.entries}
    answers = [one for one in race.measure_candidates(found.candidates, QUICK) if "record" in one]
    records = {one["name"]: found.finish(one["name"], dict(found.facts) | one["record"]) for one in answers}
    for name, record in records.items():
        tables.KERNELS.new_row(**sides[name] | record)  # all are columns
    return {name: sides[name] | records[name] for name in sides}


def entry(name: str, call, side: str = "competitor", error: float = 0.0, **known) -> Entry:
    ready = Ready(call, lambda _: error, Cost(1000, 400, 800), Traffic(64, 2**20))
    return Entry(name, side, lambda: ready, **known)


def test_what_is_wrong_or_missing_or_too_large_gets_no_time_and_a_reason():
    def broken():
        raise RuntimeError("no such tensor")

    called = []
    entries = [
        entry("ours", lambda: None, "project", bytes_kept=10),
        entry("wrong", lambda: called.append(1), error=0.5),
        entry("nan", lambda: None, error=float("nan")),
        entry("absent", None, unavailable="Torch is not installed: pip install it"),
        entry("large", None, bytes_needed=10**9 - 5),
        entry("own limit", None, bytes_needed=100, bytes_most=10),
        entry("broken", broken),
    ]
    found = measure(Field(entries, {"nnz": 3}, 1e-3))
    assert {name: row["status"] for name, row in found.items()} == {
        "ours": "ok", "wrong": "wrong", "nan": "wrong", "absent": "unsupported", "large": "memory",
        "own limit": "memory", "broken": "failed",
    }  # fmt: skip
    assert found["wrong"]["reason"] == "Wrong against the float64 reference by 0.5; allowed is 0.001."
    assert found["absent"]["reason"] == "Unavailable because Torch is not installed: pip install it"
    assert found["broken"]["reason"] == "RuntimeError: no such tensor"
    assert "seconds" not in found["wrong"]
    assert len(called) == 1, "it was called to be judged, and never timed"


def test_a_record_has_times_and_the_bound():
    limits = Limits([Bandwidth("read", 2**20, 0, 2, 1e6), Bandwidth("gather", 2**20, 64, 2, 4e6)], threads=2)
    (ours,) = measure(Field([entry("ours", lambda: None, "project")], {"nnz": 3}, 1e-3), limits=limits).values()
    assert (ours["nnz"], ours["flops"], ours["bytes_compulsory"]) == (3, 1000, 400)
    assert ours["seconds_bound"] == pytest.approx(400 / 1e6)
    assert ours["bound_by"] == "stream"
    assert ours["bound_share"] == pytest.approx(400 / 1e6 / ours["seconds"])
    assert ours["threads_used"] == 1
    assert len(ours["samples"]) == 3


def test_a_wrong_kernel_is_refused_a_time(monkeypatch):
    kernel = kernels.get("csr_dense")

    @functools.wraps(kernel.reference)
    def off(indptr, indices, data, x, out):
        kernel.cpu(indptr, indices, data, x, out)
        out[-1, 0] += 1

    bad = dataclasses.replace(kernel, cpu=off)
    monkeypatch.setattr(
        candidates.kernels, "get", lambda name: bad if name == "csr_dense" else kernels.registry.get(name)
    )
    rows = measure(configurations.field_of(BenchmarkConfiguration("kernels", "csr_dense", TINY, 3)))
    assert rows["csr_dense"]["status"] == "wrong"
    assert rows["scipy.csr_dense"]["status"] == "ok"


@pytest.mark.parametrize("task", [name for name in candidates.list_tasks() if name != "csr_to_dense"])
def test_every_task_measures_and_every_candidate_of_ours_is_right(task):
    rows = measure(configurations.field_of(BenchmarkConfiguration("kernels", task, TINY, 3))).values()
    assert {row["status"] for row in rows if row["side"] == "project"} == {"ok"}
    assert {row["status"] for row in rows} <= {"ok", "unsupported"}
    assert max(row["error"] for row in rows if row["status"] == "ok") < 1e-5


@pytest.mark.parametrize("batches", ["repeat", "new"])
@pytest.mark.parametrize("optimizer", list(steps.OPTIONS))
def test_a_step_reaches_the_weights_of_the_definition(optimizer, batches):
    configuration = BenchmarkConfiguration("step", "step", TINY, 3, optimizer, batches)
    rows = measure(configurations.field_of(configuration)).values()
    ours = next(iter(rows))
    assert ours["candidate"] == "ours"
    assert {row["status"] for row in rows} <= {"ok", "unsupported"}, [row["reason"] for row in rows]
    assert ours["error"] < 1e-4
    assert ours["seconds_forward"] > 0
    assert ("seconds_plan" in ours) == (batches == "new")


@pytest.mark.parametrize("make", [configurations.Graph, steps_of_user_code.Training, steps_of_user_code.Fitted])
@pytest.mark.parametrize("batches", ["repeat", "new"])
def test_steps_of_ours_on_large_batches_reach_the_weights_of_the_definition(make, batches):
    problem = steps.make_problem(Shape("large batch", 300, 500, 20), 1, "sgd")
    expected = steps.expected_weights(problem)
    ready = steps.ready(make(problem), problem, batches, expected)
    ready.call()
    assert ready.judge(None) < 1e-4


@pytest.mark.parametrize("optimizer", ["sgd", "adagrad", "adam"])
def test_loops_of_pytorch_with_and_without_the_lines_of_the_bridge_train_the_same_weights(optimizer):
    pytest.importorskip("torch")
    configuration = BenchmarkConfiguration("pytorch", "pytorch", TINY, 4, optimizer, "new")
    rows = measure(configurations.field_of(configuration)).values()
    names = {"ours", "ours, fused", "torch, sparse gradient", "torch, dense gradient"}
    assert {row["candidate"]: row["status"] for row in rows} == dict.fromkeys(names, "ok")
    assert max(row["error"] for row in rows) < 1e-4


def test_a_step_with_a_wrong_rate_is_refused(monkeypatch):
    problem = steps.make_problem(TINY, 3, "adagrad")
    expected = steps.expected_weights(problem)
    monkeypatch.setitem(steps.OPTIONS, "adagrad", {"learning_rate": 0.051, "decay": 0.0, "epsilon": 1e-20})
    ready = steps.ready(steps.Ours(problem), problem, "repeat", expected)
    ready.call()
    assert ready.judge(None) > steps.ALLOWED


@pytest.mark.parametrize("name", ["csr_dense", "csr_t_dense", "sgd_fused", "adam_lazy", "slice_rows", "merge_rows"])
def test_the_judge_sees_a_change_of_one_result(name):
    kernel = kernels.get(name)
    case = CASES["width 16"]
    args = kernel.arguments(case)
    judge = candidates.make_judge(kernel, args)
    returned = kernel.cpu(*args)
    assert judge(returned) < 1e-5
    changed = candidates.collect_results(kernel, args, returned)[-1]
    changed += np.asarray(1, changed.dtype)
    assert judge(returned) > 1e-3


def test_unknown_names_list_the_known():
    with pytest.raises(BenchError, match=r"Unknown task .* 'dot'.*Expected one of: csr_dense, plan"):
        configurations_of("kernels", only="dot")
    with pytest.raises(BenchError, match=r"Unknown shape .* 'cube'.* uniform 100k"):
        configurations_of("kernels", shape="cube")
    with pytest.raises(BenchError, match=r"Unknown task 'dot'.*Expected one of: plan"):
        candidates.list_candidates("dot", TINY)
    with pytest.raises(
        BenchError, match=r"Unknown optimizer in this suite 'ftrl'.*Expected one of: sgd, adagrad, adam"
    ):
        steps.make_problem(TINY, 1, "ftrl")


def test_suites_hold_what_they_promise():
    full = configurations_of("kernels")
    product = [configuration for configuration in full if configuration.task == "csr_dense"]
    assert {configuration.shape.rows for configuration in product} >= {256, 4096, 65_536}
    assert {configuration.width for configuration in product if configuration.shape.name == "uniform 100k"} == set(
        kernel_suites.WIDTHS
    )
    assert {configuration.task for configuration in full} == set(candidates.list_tasks()), (
        "every kernel takes part by being registered"
    )
    assert len(configurations_of("kernels", quick=True)) < len(full) / 3
    assert len(configurations_of("step")) == 3 * 3 * 3 * 2 + 2
    loops = configurations_of("pytorch")
    sizes = {(each.shape.features, each.width) for each in loops if each.optimizer == "adam"}
    assert sizes == {(features, width) for features in (100_000, 1_000_000) for width in (1, 16, 64)}
    assert len(configurations_of("pytorch", quick=True)) < len(loops)


def test_a_run_measures_bandwidth_then_a_record_for_each_candidate_and_resumes(tmp_path, monkeypatch):
    todo = [BenchmarkConfiguration("kernels", "csr_dense", TINY, width) for width in (1, 2)]
    rates = [vars(Bandwidth("read", 2**20, 0, 1, 1e9)), vars(Bandwidth("gather", 2**20, 64, 1, 1e9))]
    monkeypatch.setattr(kernel_suites, "POLICY", QUICK)
    monkeypatch.setitem(kernel_suites.LISTS, "kernels", {"cpu": lambda quick: todo})
    monkeypatch.setattr(race.Worker, "answers", here(race.Worker.answers, rates))
    for _ in range(2):
        run = Run(tables.KERNELS, tmp_path, threads=1)
        assert run.collect(kernel_suites.measure_kernels(run))
        assert [one["candidate"] for one in run.records] == [
            "read", "gather", *(name for one in todo for name, *_ in configurations.names_of(one))
        ]  # fmt: skip
    assert {one["status"] for one in run.records} <= {"ok", "unsupported"}
    assert run.records[0]["task"] == "bandwidth"
    ours = run.records[2]
    assert (ours["case"], ours["suite"], ours["width"]) == ("csr_dense tiny, R 40, N 1", "kernels", 1)
    assert ours["bound_share"] > 0


def here(answers, rates):
    """Answers of the contest in this process, where another one would load as much; rates of the machine are given."""

    def answered(self, request, seconds):
        return iter(rates) if self.work.endswith(":bandwidths") else contest.answers(request)

    return answered
