"""Which folder a sweep goes into: rows of another are neither mixed in nor hidden, and it is told."""

import pytest

from tests.support import rows as made
from tests.support.panel_runs import write_run
from workbench.sweeps import grid, run_folder
from workbench.sweeps.spec import Spec, dump_spec

CANDIDATES = [{"format": "csr", "engine": "ours", "gradient": "fused", "update": "lazy"}]


def spec_of(*densities: float, name: str = "news") -> Spec:
    return Spec(name=name, axes={"dataset": "uniform", "density": densities, "threads": 1}, candidates=CANDIDATES)


def put(folder, spec, rows=1):
    """A finished run of a sweep, with rows of its first configuration."""
    key = grid.configuration_key(grid.expand_grid(spec).configurations[0])
    row = next(row for row in made.sweep() if row["format"] == "csr")
    write_run(folder, [row | {"key": key, "round": number} for number in range(rows)], "finished", name=spec.name)
    (folder / run_folder.SPEC).write_text(dump_spec(spec))


def test_a_sweep_stays_in_its_folder_and_one_that_uses_none_of_its_rows_has_another(here):
    folder = here / "runs" / "news"
    assert run_folder.resolve_run_folder(spec_of(0.1), folder, 0) == folder, "nothing is there"
    put(folder, spec_of(0.1))
    assert run_folder.resolve_run_folder(spec_of(0.1, name="renamed"), folder, 0) == folder, "the same sweep"
    assert run_folder.resolve_run_folder(spec_of(0.1, 0.2), folder, 1) == folder, "it uses a row"
    assert run_folder.resolve_run_folder(spec_of(0.2), folder, 0) == here / "runs" / "news-2"
    put(here / "runs" / "news-2", spec_of(0.2))
    assert run_folder.resolve_run_folder(spec_of(0.2), folder, 0) == here / "runs" / "news-2", "it is there already"
    assert run_folder.resolve_run_folder(spec_of(0.3), folder, 0) == here / "runs" / "news-3"
    (here / "runs" / "news-2" / run_folder.PROGRESS).write_text("no JSON")
    assert run_folder.resolve_run_folder(spec_of(0.3), folder, 0) == here / "runs" / "news-3", "a damaged run is let be"


def test_whoever_takes_over_a_folder_is_told_what_becomes_of_its_rows(here):
    folder = here / "runs" / "news"
    assert run_folder.replaced_records_warning(folder, spec_of(0.1)) == ""
    put(folder, spec_of(0.1), rows=3)
    assert run_folder.replaced_records_warning(folder, spec_of(0.1)) == ""
    text = run_folder.replaced_records_warning(folder, spec_of(0.2))
    assert "has 3 rows of another sweep, which differs in density: none of them answers this one" in text
    assert "the others stay in trials.jsonl" in text


def test_two_sweeps_at_once_are_refused(here):
    write_run(here / "runs" / "first", [], "finished")
    run_folder.require_no_active_sweep(here / "runs" / "second")
    write_run(here / "runs" / "first", [], "running")
    run_folder.require_no_active_sweep(here / "runs" / "first")  # its own lock tells
    with pytest.raises(run_folder.RunError, match="first is running, and two sweeps at once disturb each other"):
        run_folder.require_no_active_sweep(here / "runs" / "second")
