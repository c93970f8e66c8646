"""The suite of several machines: what it has is not measured again, and its page says what was wanted and what came."""

import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

from benchmarks import cluster as bench
from benchmarks import cluster_clicks as clicks
from benchmarks import cluster_networks as networks
from benchmarks import cluster_suite as suite
from benchmarks import streamed, tables
from benchmarks.harness import Run
from benchmarks.page import write
from tests.support.ranks import on_ranks
from workbench import data
from workbench.cluster.cost import Line
from workbench.cluster.training import TrainingError

HERE = {"machine": "m", "status": "ok"}


def made(**columns) -> dict:
    return tables.CLUSTER.new_row(**{"key": columns["case"], **HERE, **columns})


def step(machines: int, seconds: float, how: str = "predicted", **more) -> dict:
    known = {"part": "step", "machines": machines, "seconds_step": seconds, "is_measured": how == "measured", **more}
    cores = None if how == "predicted" else 2
    sizes = {"batch_rows": 64, "features": 100, "width": 16, "seconds_network": 1e-3, "bytes_moved": 1e6}
    return made(case=f"step {machines} {how}", cores=cores, **known, **sizes)


STEPS = [step(1, 4e-3), step(2, 3e-3), step(4, 6e-3), step(2, 5e-3, "predicted here"), step(2, 6e-3, "measured")]
BYTES = {"part": "bytes", "features": 10**6, "touched": 100.0, "bytes_moved": 13700.0, "bytes_least": 13600.0}
BYTES |= {"ratio": 13700 / 13600, "rows_made": 500}
ROWS = {"part": "rows", "bytes_data": 2 * 2**30, "bytes_limit": 2**30, "seconds_made": 60.0, "seconds_all": 90.0}
PULL = {"part": "exchange", "case": "pull", "seconds_step": 4e-4, "ratio": 2.0, "seconds_bare": 2e-4}
NETWORK = {"part": "network", "case": "2 ranks over 1 Gbit/s", "ratio": 1.1, "seconds_step": 0.011, "latency": 1e-4}
NETWORK |= {"seconds_predicted": 0.01, "seconds_alone": 0.02, "bytes_second": 1e8}


def epoch(way: str, seconds: float, loss: float) -> dict:
    known = {"part": "clicks", "width": 16, "rows_trained": 1000, "sync_every": 5, "quality": 0.8, "way": way}
    known |= {"batch_rows": 100, "features": 1000, "seconds_addition": 1e-3}
    return made(case=way, seconds_epoch=seconds, loss=loss, **known)


STREAMED = ROWS | {"case": "10000000 rows streamed", "is_held": False, "rows_trained": 800}
STREAMED |= {"bytes_resident": 2**29, "bytes_asked": 2**29}
HELD = ROWS | {"case": "h", "is_held": True, "status": "memory", "reason": "MemoryError: no"}


def test_the_chart_says_what_is_measured_and_what_is_predicted():
    sentence = suite.draw(suite.steps_of(STEPS), figure := Figure())
    assert sentence == (
        "A step is predicted to be faster than on one machine from 2 on, fastest on 2 (3 ms). "
        "Checked on one machine: measured / predicted is 1.2 with 2 processes."
    )
    labels = [line.get_label() for line in figure.axes[0].get_lines()]
    assert [label.split(":")[0] for label in labels] == ["predicted", "predicted", "measured"]


def test_of_rows_with_one_name_the_later_counts_and_other_machines_do_not():
    again = [*STEPS, step(2, 9e-3, "measured"), step(2, 1.0, "measured", machine="other"), step(1, 8e-3)]
    steps = suite.steps_of(again)
    assert [row["seconds_step"] for row in steps.machines] == [8e-3, 3e-3, 6e-3]
    assert steps.ratios == {2: pytest.approx(9 / 5)}


@pytest.mark.parametrize(
    ("rows", "met"),
    [
        ([made(case="b", **BYTES)], [True]),
        ([made(case="b", **BYTES | {"ratio": 1.2})], [False]),
        ([made(case="b", **BYTES), made(case="c", **BYTES | {"bytes_moved": 13800.0})], [True, True, False]),
        ([made(**STREAMED), made(**HELD)], [True, True]),
        ([made(**STREAMED | {"bytes_resident": 2**31}), made(**HELD | {"status": "ok"})], [False, False]),
        ([made(**STREAMED | {"status": "memory", "reason": "MemoryError: no"})], [False]),
        ([made(**PULL), made(**NETWORK), made(**NETWORK | {"case": "2", "ratio": 1.3})], [True, False, True, False]),
        ([epoch(clicks.ONE, 2.0, 0.5), epoch(clicks.LOCAL, 1.0, 0.4)], [True] * 6),
        ([epoch(clicks.ONE, 2.0, 0.5), epoch(clicks.BY_STEP, 3.0, 0.51)], [False, False]),
        ([epoch(clicks.LOCAL, 1.0, 0.5), epoch(clicks.PYTORCH, 6.0, 0.5)], [True]),
        ([made(**NETWORK | {"status": "skipped", "reason": "needs root"})], []),
    ],
)
def test_the_page_says_what_was_wanted_and_whether_it_came(tmp_path, rows, met):
    for row in [*rows, *STEPS]:
        tables.CLUSTER.append(tmp_path / tables.CLUSTER.file, row)
    assert [target.met for target in suite.list_targets(rows)] == met
    text = write(suite.SUITE, tmp_path, "python -m benchmarks cluster").read_text()
    targets = text.split("##")[0]
    assert (targets.count("| met |"), targets.count("| missed |")) == (met.count(True), met.count(False))
    assert "Checked on one machine: measured / predicted is 1.2 with 2 processes." in text
    assert text.count("10000000 rows streamed") == sum(row["case"] == STREAMED["case"] for row in rows)
    assert (tmp_path / "cluster-steps.svg").exists()


def test_each_part_is_measured_once_in_a_process_and_one_that_fails_has_a_record(tmp_path, monkeypatch):
    code = (
        "import json, sys; print(json.dumps({'case': sys.argv[1], 'part': 'step'})); sys.exit(sys.argv[1] == 'step 2')"
    )
    monkeypatch.setattr(suite, "PROGRAM", (sys.executable, "-c", code))
    for count in (len(bench.PARTS) + 1, len(bench.PARTS) + 3):  # what failed is measured again
        run = Run(tables.CLUSTER, tmp_path, quick=True)
        assert run.collect(suite.measure(run))
        assert len(run.records) == count
    (failed,) = {one["reason"] for one in run.records if one["status"] == "failed"}
    assert failed.startswith("The measuring ended with status 1; its logs are in")


def test_a_link_has_a_name_and_who_may_make_no_namespaces_is_told_why(monkeypatch):
    assert [link.name for link in networks.LINKS][:2] == ["no limit", "10 Gbit/s"]
    assert networks.Link(1.0, 0.5e-3).name == "1 Gbit/s, 0.5 ms"
    monkeypatch.setattr(networks.shutil, "which", lambda name: None if name == "tc" else name)
    assert networks.why_not() == "Network namespaces need tc, which is not installed."
    monkeypatch.undo()
    monkeypatch.setattr(networks.shutil, "which", lambda name: name)
    monkeypatch.setattr(networks.os, "geteuid", lambda: 1000)
    assert "need root" in networks.why_not()
    (row,) = bench.measured("networks", "quick", None)
    assert (row["status"], row["reason"]) == ("skipped", networks.why_not())


def test_a_pull_and_a_push_are_compared_with_the_calls_alone(monkeypatch):
    monkeypatch.setattr(bench, "TRIES", 8)
    first, second = on_ranks(2, bench.exchange_of)
    assert first == second
    assert first["ratio"] == first["seconds_step"] / first["seconds_bare"] > 0


@pytest.mark.exhaustive
@pytest.mark.parametrize("width", [1, 16])
def test_epochs_of_clicks_have_the_loss_of_one_process(width, tmp_path):
    pytest.importorskip("mpi4py", reason="needs MPI: the extra mpi")
    few, ways = clicks.Clicks(width).reduced(), {}
    for row in clicks.epochs_of(few, tmp_path):
        ways[row["way"]] = row
        assert row.get("status") in (None, "skipped"), row["reason"]
    assert ways[clicks.BY_STEP]["loss"] == pytest.approx(ways[clicks.ONE]["loss"], rel=0.01)
    assert ways[clicks.LOCAL]["loss"] == pytest.approx(ways[clicks.ONE]["loss"], rel=0.1)
    if "status" not in (pytorch := ways[clicks.PYTORCH]):
        assert pytorch["loss"] == pytest.approx(ways[clicks.BY_STEP]["loss"], rel=1e-4)


def test_steps_are_predicted_for_machines_and_for_processes_here():
    quick = bench.SIZES["quick"]
    line, cores = Line(1e-5, 1e-7), bench.Cores(2)
    speeds, active = bench.Speeds(line, line), bench.active_rows_by(quick)
    names = [columns["case"] for columns in bench.predict_step_times(quick, active, speeds, cores)]
    assert len(names) == len(set(names)) == 8 + 3


def test_rows_that_are_held_are_refused_memory_and_other_failures_are_raised(tmp_path, monkeypatch):
    asked = []

    def train(settings, trainers, folder, **options):
        asked.append((settings.get("reading"), options["bytes_most"]))
        if settings.get("reading"):
            raise TrainingError("Trainer 0 failed: MemoryError: no\nlog")
        return {"bytes_resident": [3, 5], "bytes_asked": [4, 2], "rows": 400, "qualities": {"AUC": 0.7}}

    monkeypatch.setattr(streamed, "train", train)
    kept, held = (made(**columns) for columns in streamed.trained(1000, tmp_path))
    limit = kept["bytes_data"] // 2
    assert asked == [(None, limit), ("whole=True", limit)]
    assert (kept["bytes_resident"], kept["bytes_asked"], kept["rows_trained"]) == (5, 4, 800)
    assert (held["status"], held["reason"]) == ("memory", "Trainer 0 failed: MemoryError: no")
    assert [kept["case"], held["case"]] == streamed.names_of(1000)

    def failing(*_, **__):
        raise TrainingError("Trainer 0 failed: ValueError: other")

    monkeypatch.setattr(streamed, "train", failing)
    with pytest.raises(TrainingError, match="other"):
        list(streamed.trained(1000, tmp_path))


def test_generated_clicks_have_an_entry_a_field_and_labels_that_can_be_learnt(tmp_path):
    made = streamed.write(tmp_path / "x.sparse", 400, 4000, seed=1)
    found = data.load("sparse", path=str(tmp_path / "x.sparse"))
    assert 0 < made - 400 * (streamed.FIELDS * 4 + 8 + 8) < 1000  # columns, pointers, labels; the headers of files
    assert found.x.shape == (400, 4000)
    assert np.diff(found.x.read(0, 400).indptr).tolist() == [streamed.FIELDS] * 400
    assert 0.2 < (found.y == 1).mean() < 0.9
    (one,), (two,) = (list(streamed.blocks(400, 4000, seed)) for seed in (1, 2))
    assert not np.array_equal(one.x.indices, two.x.indices)


def test_bytes_are_those_of_the_rows_of_others():
    first, second = on_ranks(2, lambda rank: bench.bytes_of(rank, 10**6, bench.SIZES["quick"]))
    assert (first["machines"], first["bytes_moved"]) == (2, first["bytes_least"])
    assert first["ratio"] == second["ratio"] == 1.0
    assert 2 * 1990 < first["rows_made"] <= 2 * 4000
