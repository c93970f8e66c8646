"""The benchmark: what is right gets a time and the right ratio, what is wrong a reason, and no row is lost."""

import dataclasses
import functools
import json
from itertools import count

import numpy as np
import pytest

import kernels
from benchmarks import candidates, child, configurations, experiment, runner, steps, steps_of_user_code, tables
from benchmarks.candidates import Ready, Traffic
from benchmarks.child import measure
from benchmarks.configurations import BenchmarkConfiguration, Entry, Field
from benchmarks.interleaved import Policy, interleave, median_ratio
from benchmarks.shapes import BenchError, Shape
from kernels import Cost
from tests.support.cases import CASES
from workbench.measure.bandwidth import Bandwidth, Limits
from workbench.measure.child import Ended

TINY = Shape("tiny", 40, 300, 6, sigma=0.5, slope=1.0)
QUICK = Policy(seconds_warmup=0.0, seconds_settle=0.0, seconds_sample=0.0, rounds=3)


class Workload:
    """A clock that only the calls move: each takes its own time, and the machine may slow down as a whole."""

    def __init__(self) -> None:
        self.now, self.slowness, self.order = 0.0, 1.0, []

    def clock(self) -> float:
        return self.now

    def call(self, name: str, seconds: float):
        def do() -> None:
            self.now += seconds * self.slowness
            self.order.append(name)

        return do


def entry(name: str, call, side: str = "competitor", error: float = 0.0, **known) -> Entry:
    ready = Ready(call, lambda _: error, Cost(1000, 400, 800), Traffic(64, 2**20))
    return Entry(name, side, lambda: ready, **known)


def test_a_planted_slow_competitor_has_its_ratio_whatever_the_machine_does():
    work = Workload()
    calls = {"ours": work.call("ours", 1e-3), "slow": work.call("slow", 3e-3), "fast": work.call("fast", 5e-4)}
    drift = count(1)
    ours = calls["ours"]
    calls["ours"] = lambda: (setattr(work, "slowness", 1 + next(drift) / 1e4), ours())
    taken = interleave(calls, Policy(seconds_warmup=0, seconds_sample=5e-3, rounds=7), work.clock)
    assert median_ratio(taken["slow"], taken["ours"]) == pytest.approx((3.0, 3.0, 3.0), rel=0.02)
    assert median_ratio(taken["fast"], taken["ours"])[0] == pytest.approx(0.5, rel=0.02)
    assert (taken["slow"].calls, taken["ours"].calls, taken["fast"].calls) == (2, 5, 10)


def test_the_order_is_rotated_each_round():
    work = Workload()
    policy = Policy(seconds_warmup=0, seconds_settle=0, seconds_sample=1e-3, rounds=3, slow=1e9)
    interleave({name: work.call(name, 1e-3) for name in "abc"}, policy, work.clock)
    assert "".join(work.order[6:]) == "abcbcacab", "after two calls each to calibrate"


def test_a_very_slow_candidate_has_fewer_rounds():
    work = Workload()
    calls = {"ours": work.call("ours", 1e-5), "slow": work.call("slow", 0.1)}
    taken = interleave(calls, Policy(seconds_warmup=0, rounds=9, rounds_slow=3), work.clock)
    assert (len(taken["ours"].seconds), len(taken["slow"].seconds)) == (9, 3)
    assert median_ratio(taken["slow"], taken["ours"])[0] == pytest.approx(1e4)


def test_a_case_that_takes_long_has_fewer_rounds():
    work = Workload()
    calls = {name: work.call(name, 1.0) for name in "ab"}
    taken = interleave(calls, Policy(seconds_warmup=0, rounds=9, rounds_least=4, seconds_most=3.0), work.clock)
    assert len(taken["a"].seconds) == len(taken["b"].seconds) == 4


def test_what_is_wrong_or_missing_or_too_large_gets_no_time_and_a_reason():
    def broken():
        raise RuntimeError("no such tensor")

    work = Workload()
    entries = [
        entry("ours", work.call("ours", 1e-3), "ours"),
        entry("wrong", work.call("wrong", 1e-6), error=0.5),
        entry("nan", work.call("nan", 1e-6), error=float("nan")),
        entry("absent", None, unavailable="Torch is not installed: pip install it"),
        entry("large", None, bytes_needed=10**12),
        entry("own limit", None, bytes_needed=100, bytes_most=10),
        entry("broken", broken),
    ]
    found = {row["candidate"]: row for row in measure(Field(entries, {"nnz": 3}, 1e-3), QUICK, 10**9, None, work.clock)}
    assert {name: row["status"] for name, row in found.items()} == {
        "ours": "ok", "wrong": "wrong", "nan": "wrong", "absent": "unsupported", "large": "memory",
        "own limit": "memory", "broken": "failed",
    }  # fmt: skip
    assert found["wrong"]["reason"] == "Wrong against the float64 reference by 0.5; allowed is 0.001."
    assert found["absent"]["reason"] == "Unavailable because Torch is not installed: pip install it"
    assert found["broken"]["reason"] == "RuntimeError: no such tensor"
    assert found["large"]["bytes_needed"] == 10**12
    assert "seconds" not in found["wrong"]
    assert work.order.count("wrong") == 1, "it was called to be judged, and never timed"


def test_a_row_has_times_rates_bound_and_ratio_and_fits_the_table():
    work = Workload()
    entries = [entry("ours", work.call("ours", 1e-3), "ours"), entry("competitor", work.call("competitor", 2e-3))]
    limits = Limits([Bandwidth("read", 2**20, 0, 2, 1e6), Bandwidth("gather", 2**20, 64, 2, 4e6)], threads=2)
    ours, competitor = measure(Field(entries, {"nnz": 3, "touched": 2}, 1e-3), QUICK, 10**9, limits, work.clock)
    assert competitor["ratio"] == pytest.approx(2.0)
    assert competitor["reference"] == "ours"
    assert ours["bytes_per_second"] == pytest.approx(800 / 1e-3)
    assert ours["seconds_bound"] == pytest.approx(400 / 1e6)
    assert ours["bound_by"] == "stream"
    assert ours["bound_share"] == pytest.approx(0.4)
    stored = tables.BENCH.new_row(key="a", **ours)
    assert [name for name in ours if stored[name] is None] == []


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
    rows = measure(configurations.field_of(BenchmarkConfiguration("kernels", "csr_dense", TINY, 4)), QUICK, 10**9)
    assert rows[0]["status"] == "wrong"
    assert {row["candidate"]: row["status"] for row in rows}["scipy.csr_dense"] == "ok"


@pytest.mark.parametrize("task", [name for name in candidates.list_tasks() if name != "csr_to_dense"])
def test_every_task_measures_and_every_candidate_of_ours_is_right(task):
    rows = measure(configurations.field_of(BenchmarkConfiguration("kernels", task, TINY, 4)), QUICK, 10**9)
    assert {row["status"] for row in rows if row["side"] == "ours"} == {"ok"}
    assert {row["status"] for row in rows} <= {"ok", "unsupported"}
    assert max(row["error"] for row in rows if row["status"] == "ok") < 1e-5
    for row in rows:
        tables.BENCH.new_row(**row)


@pytest.mark.parametrize("batches", ["repeat", "new"])
@pytest.mark.parametrize("optimizer", list(steps.OPTIONS))
def test_a_step_reaches_the_weights_of_the_definition(optimizer, batches):
    configuration = BenchmarkConfiguration("step", "step", TINY, 3, optimizer, batches)
    rows = measure(configurations.field_of(configuration), QUICK, 10**9)
    for row in rows:
        tables.BENCH.new_row(**row)
    ours = rows[0]
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
    rows = measure(configurations.field_of(configuration), QUICK, 10**9)
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
    with pytest.raises(BenchError, match=r"Unknown suite 'kernel'.*Expected one of: kernels, step"):
        runner.configurations_of("kernel")
    with pytest.raises(BenchError, match=r"Unknown task .* 'dot'.*Expected one of: csr_dense, plan"):
        runner.configurations_of("kernels", only="dot")
    with pytest.raises(BenchError, match=r"Unknown shape .* 'cube'.* uniform 100k"):
        runner.configurations_of("kernels", shape="cube")
    with pytest.raises(BenchError, match=r"Unknown task 'dot'.*Expected one of: plan"):
        candidates.list_candidates("dot", TINY)
    with pytest.raises(
        BenchError, match=r"Unknown optimizer in this suite 'ftrl'.*Expected one of: sgd, adagrad, adam"
    ):
        steps.make_problem(TINY, 1, "ftrl")


def test_suites_hold_what_they_promise():
    full = runner.configurations_of("kernels")
    product = [configuration for configuration in full if configuration.task == "csr_dense"]
    assert {configuration.shape.rows for configuration in product} >= {256, 4096, 65_536}
    assert {configuration.width for configuration in product if configuration.shape.name == "uniform 100k"} == set(
        runner.WIDTHS
    )
    assert {configuration.task for configuration in full} == set(candidates.list_tasks()), (
        "every kernel takes part by being registered"
    )
    assert len(runner.configurations_of("kernels", quick=True)) < len(full) / 3
    assert len(runner.configurations_of("step")) == 3 * 3 * 3 * 2 + 2
    loops = runner.configurations_of("pytorch")
    sizes = {(each.shape.features, each.width) for each in loops if each.optimizer == "adam"}
    assert sizes == {(features, width) for features in (100_000, 1_000_000) for width in (1, 16, 64)}
    assert len(runner.configurations_of("pytorch", quick=True)) < len(loops)


def test_a_run_writes_a_row_for_each_candidate_and_resumes(tmp_path, monkeypatch):
    todo = [
        BenchmarkConfiguration("kernels", "csr_dense", TINY, 1),
        BenchmarkConfiguration("kernels", "coo_dense", TINY, 4),
    ]
    policy = dataclasses.replace(QUICK, rounds=2)
    run = runner.Runner(tmp_path, policy, threads=1)
    run._bandwidths = lambda: None  # its own test is below; here it would take seconds
    outcome = run.run(todo[:1])
    rows = tables.BENCH.read(tmp_path)
    assert (outcome.done, outcome.reused, outcome.stopped) == (1, 0, False)
    assert [row["candidate"] for row in rows] == [name for name, *_ in configurations.names_of(todo[0])]
    assert {row["status"] for row in rows} <= {"ok", "unsupported"}
    assert rows[0]["threads"] == 1
    again = runner.Runner(tmp_path, policy, threads=1)
    again._bandwidths = lambda: None
    again.worker.answers = lambda request, seconds: child.answers(request)  # here: another process would load as much
    monkeypatch.setattr(child, "set_threads", lambda count: None)
    outcome = again.run(todo)
    assert (outcome.done, outcome.reused) == (1, 1)
    candidates = [row["candidate"] for row in tables.BENCH.read(tmp_path)]
    assert candidates == [name for configuration in todo for name, *_ in configurations.names_of(configuration)]
    assert json.loads((tmp_path / experiment.MACHINE).read_text())["cores"]


def test_a_child_that_dies_or_takes_too_long_leaves_rows_with_the_reason(tmp_path, monkeypatch):
    todo = [BenchmarkConfiguration("kernels", "squared", TINY, width) for width in (1, 2)]
    run = runner.Runner(tmp_path, QUICK, threads=1)
    run._bandwidths = lambda: None
    ends = iter([Ended({"status": "timeout", "reason": "too long"})])

    def answers(numbers):
        yield {"cell": numbers[0]}
        if end := next(ends, None):
            raise end
        yield {"cell": numbers[0], "rows": [{"candidate": "squared", "side": "ours", "status": "ok"}]}

    monkeypatch.setattr(run, "_answers", answers)
    outcome = run.run(todo)
    assert [(row["width"], row["status"], row["reason"]) for row in tables.BENCH.read(tmp_path)] == [
        (1, "timeout", "too long"),
        (2, "ok", ""),
    ]
    assert outcome.done == 2


def test_ctrl_c_keeps_what_is_finished(tmp_path, monkeypatch):
    run = runner.Runner(tmp_path, QUICK, threads=1)
    run._bandwidths = lambda: None

    def answers(numbers):
        yield {"cell": 0, "rows": [{"candidate": "squared", "side": "ours", "status": "ok", "reason": ""}]}
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "_answers", answers)
    outcome = run.run([BenchmarkConfiguration("kernels", "squared", TINY, width) for width in (1, 2)])
    assert (outcome.stopped, outcome.done, len(tables.BENCH.read(tmp_path))) == (True, 1, 1)


def test_the_key_depends_on_settings_way_of_measuring_and_candidates(monkeypatch):
    configuration = BenchmarkConfiguration("kernels", "csr_dense", TINY, 4)
    keys = {
        configurations.key(configuration, QUICK),
        configurations.key(dataclasses.replace(configuration, width=8), QUICK),
        configurations.key(configuration, Policy()),
    }
    assert len(keys) == 3
    monkeypatch.setattr(configurations, "names_of", lambda _: [("csr_dense", "ours", "")])
    assert configurations.key(configuration, QUICK) not in keys
