"""Two runs: one build twice is the same, a slower configuration is found, drift is the machine's."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support import rows as maker
from workbench import store
from workbench.analysis import changes
from workbench.analysis.changes import compare_runs

LAWS = (
    maker.DENSE,
    maker.SERIAL,
    maker.SPARSE,
    replace(maker.SPARSE, update="lazy", fixed=6e-5),
    replace(maker.SPARSE, engine="vendor", gradient="dense", fixed=9e-4, slope=0.25),
    replace(maker.SPARSE, format="csc", fixed=2e-4, slope=0.14),
)


def measured(run, *, seed, source="5eed", machine="bench-1", change=lambda row: row, **known):
    """The frame of one run."""
    rows = maker.sweep(LAWS, seed=seed, run=run, source=source, machine=machine, **known)
    return store.frame(map(change, rows))


def slowed_machine(times):
    """What a slower machine does to a row: all of its seconds."""

    def change(row):
        seconds = {name: times * value for name, value in row.items() if name.startswith("seconds_") and value}
        return row | seconds

    return change


@pytest.mark.parametrize("noise", [0.03, 0.2])
@pytest.mark.parametrize("source", ["5eed", "0ther"], ids=["same key", "other key"])
def test_one_build_measured_twice_is_the_same_or_ambiguous(noise, source):
    found = [
        compare_runs(
            measured("r1", seed=seed, noise=noise, shared=0.02, samples=5),
            measured("r2", seed=100 + seed, noise=noise, shared=0.02, samples=5, source=source),
        )
        for seed in range(2)
    ]
    verdicts = [one.verdict for each in found for one in each.configurations]
    assert np.mean([verdict in ("same", "ambiguous") for verdict in verdicts]) >= 0.95
    assert sum(each.is_worse for each in found) == 0


@pytest.mark.parametrize(("noise", "times"), [(0.03, 2.0), (0.1, 4.0)])
def test_slower_configurations_are_found_and_no_others(noise, times):
    before = measured("r1", seed=1, noise=noise, rounds=6)
    slow = lambda row: slowed_machine(times)(row) if row["format"] == "csr" and row["engine"] == "ours" else row  # noqa: E731
    found = compare_runs(before, measured("r2", seed=2, noise=noise, rounds=6, change=slow))
    slower = changes.largest_changes(found.configurations)
    assert found.is_worse
    assert slower
    assert {one.pair.after["format"] for one in slower} == {"csr"}
    assert all(one.ratio.low <= times <= one.ratio.high for one in slower)
    assert changes.headline(found).startswith(f"Slower: {len(slower)} of 36 configurations; the most: ")


def test_a_machine_that_is_slower_throughout_is_drift_and_not_a_slower_build():
    slow = slowed_machine(1.5)
    found = compare_runs(measured("r1", seed=1), measured("r2", seed=2, change=slow))
    assert found.drift.kind == "cells"
    assert found.drift.factor == pytest.approx(1.5, rel=0.1)
    assert not found.is_worse
    assert "The machine has changed" in " ".join(changes.sentences(found))


def test_without_the_same_code_the_fixed_work_beside_the_trials_tells_the_drift():
    beside = lambda row: row | {"seconds_reference": 1e-3}  # noqa: E731
    slow = lambda row: slowed_machine(1.5)(beside(row))  # noqa: E731
    found = compare_runs(
        measured("r1", seed=1, change=beside, noise=0.02), measured("r2", seed=2, source="new", change=slow, noise=0.02)
    )
    assert found.drift.kind == "work"
    assert found.drift.factor == pytest.approx(1.5)
    assert not found.is_worse


def test_without_a_sentinel_a_drift_that_runs_have_is_allowed_for():
    found = compare_runs(measured("r1", seed=1), measured("r2", seed=2, source="new", change=slowed_machine(1.2)))
    assert found.drift.kind == "none"
    assert {configuration.verdict for configuration in found.configurations} == {"ambiguous"}


def test_other_machines_are_told():
    found = compare_runs(measured("r1", seed=1), measured("r2", seed=2, machine="bench-2"))
    assert found.drift.kind == "machines"
    assert "The machines differ, bench-1 and bench-2" in " ".join(changes.sentences(found))


def test_a_result_that_is_there_no_more_is_worse_and_named():
    lose = lambda row: maker.failed(row, "failed", "it broke") if row["format"] == "csc" else row  # noqa: E731
    found = compare_runs(measured("r1", seed=1), measured("r2", seed=2, change=lose))
    assert found.is_worse
    assert len(found.pairs.lost) == len(maker.DENSITIES)
    assert "No result any more: sparse CSC" in " ".join(changes.sentences(found))


def test_more_memory_is_worse():
    twice = lambda row: row | {"bytes_peak": 2 * row["bytes_peak"]}  # noqa: E731
    found = compare_runs(measured("r1", seed=1), measured("r2", seed=2, change=twice))
    assert {one.verdict for one in found.memory} == {"slower"}
    assert found.is_worse
    assert "More memory: 36 of 36 configurations; the most: " in " ".join(changes.sentences(found))


def test_rows_that_are_in_both_runs_are_no_evidence():
    run = measured("r1", seed=1)
    found = compare_runs(run, run)
    assert (len(found.configurations), found.pairs.again) == (0, 36)
    assert "Nothing can be compared" in changes.headline(found)


def test_three_rounds_decide_nothing():
    found = compare_runs(measured("r1", seed=1, rounds=3), measured("r2", seed=2, rounds=3, change=slowed_machine(9.0)))
    assert {configuration.verdict for configuration in found.configurations} == {"ambiguous"}
    assert "fewer than four rounds" in " ".join(changes.sentences(found))


def test_runs_of_other_configurations_are_refused_with_what_differs():
    with pytest.raises(ValueError, match=r"No configuration is in both runs\. They differ in width"):
        compare_runs(measured("r1", seed=1, width=16), measured("r2", seed=2, width=32))
    with pytest.raises(ValueError, match="The second run has no rows"):
        compare_runs(measured("r1", seed=1), store.frame([]))
    with pytest.raises(ValueError, match="within a factor above 1"):
        compare_runs(measured("r1", seed=1), measured("r2", seed=2), within=1.0)
