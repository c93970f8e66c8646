"""Answers for programs: `workbench report --json` says of each density what the records bear."""

import json

import pytest
from typer.testing import CliRunner

from tests.support import rows as maker
from tests.support.expected_ratios import contests
from workbench import store
from workbench.command import cli, exit_codes


@pytest.fixture
def run_file(here):
    """Rows of a sweep some rounds of which ran next to other programs."""
    rows = [maker.disturbed(row) if row["round"] == 1 else row for row in maker.sweep(densities=(0.001, 0.03, 0.3))]
    for row in rows:
        store.append(here / "known.jsonl", row)
    return here / "known.jsonl", rows


def test_the_answers_are_those_that_the_records_bear(run_file):
    path, rows = run_file
    came = CliRunner().invoke(cli.app, ["report", str(path), "--json"])
    assert came.exit_code == 0, came.output
    results = [load for load in json.loads(came.stdout) if load["measure"] == "time"]
    for one, known in zip(results, contests(rows), strict=True):
        ratio = known.decision.ratio
        assert one["density"] == pytest.approx(known.densities[-1])
        assert [one["ratio"], one["low"], one["high"]] == pytest.approx(ratio[:3])
        assert (one["side"], one["source"]) == (known.time, "measured")
        likely = ratio.probability if known.time == "sparse" else 1 - ratio.probability
        assert one["probability"] == pytest.approx(likely)
    assert {one["side"] for one in results} == {"sparse", "dense"}
    assert not path.with_name("report.html").exists(), "nothing is written"


def test_answers_are_not_written_to_a_file(run_file):
    came = CliRunner().invoke(cli.app, ["report", str(run_file[0]), "--json", "--out", "x.json"])
    assert came.exit_code == exit_codes.WRONG_INPUT
    assert "--json prints; leave out --out" in " ".join(came.output.split())
