"""One run has one answer through each door: records, advice, `wb.open`, JSON, terminal, panel; cut off or not."""

import html
import json
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.support import rows as maker
from workbench import store
from workbench.analysis import answer_text, configurations
from workbench.analysis.answers import answer_of
from workbench.analysis.breakeven import records_and_contests
from workbench.analysis.compare import contests_of_group
from workbench.analysis.intervals import interval_of
from workbench.analysis.verdict_text import comparison_facts
from workbench.api import results
from workbench.panels import pages
from workbench.panels.tabs.explore import Exploration
from workbench.reports import export
from workbench.sweeps import run_folder

LARGE = "structure", "full-density"
STORED = {
    f"{path.parent.name[-4:]}-{name}": pytest.param(path, marks=pytest.mark.exhaustive if name in LARGE else ())
    for name in ("demo-density", "demo-train", *LARGE)
    for path in sorted(Path("results").glob(f"*/{name}.jsonl*"))
}
MEASURES = {"time": "seconds_step", "memory": "bytes_peak"}


@cache
def demo_records():
    return tuple(store.read("results/amd-epyc-2-cores-0c50/demo-density.jsonl.gz"))


def check_doors(path):
    """Check that all doors to a file of records or a run folder give one answer; return it."""
    result, answer = results.Result(path), answer_of(export.answer_frame_of(path))
    facts = answer.facts
    assert result.answer == facts
    listed = [one for one in export.answers(export.answer_frame_of(path)) if one["is_answer"]]
    assert {one["measure"]: {name: one[name] for name in facts["time"]} for one in listed} == {
        name: facts[name] for name in MEASURES
    }
    explored = Exploration(str(path))
    assert answer_of(explored.answered).facts == facts
    headline = answer_text(export.answer_frame_of(path)).headline
    assert answer_text(explored.answered).headline == headline
    as_html, text = pages.answer(explored.answered)
    assert text.startswith(headline)
    shown = [html.unescape(" ".join(re.sub("<[^>]*>", "", one).split())) for one in (as_html, result._repr_html_())]
    assert all(headline in one for one in shown)
    return facts


@pytest.mark.parametrize("path", STORED.values(), ids=STORED)
def test_a_stored_run_has_one_answer_through_each_door(path):
    check_doors(path)


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(3, 30))]
)
def test_a_sweep_that_was_cut_off_has_one_answer_through_each_door(tmp_path, seed):
    random = np.random.default_rng(seed)
    natural = [row | {"density": None} for row in maker.sweep(noise=0.2, densities=(0.05,))]
    rows = (natural + maker.sweep(noise=0.2), maker.rich(seed), list(demo_records()))[seed % 3]
    left = rows[: int(random.integers(1, len(rows)))]
    (tmp_path / "cut.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in left), encoding="utf-8")
    check_doors(tmp_path / "cut.jsonl")


def test_a_side_that_had_no_time_has_the_predicted_answer_through_each_door(tmp_path):
    """Advice that was cut off names the side by its prediction, and so does whoever opens the run."""
    dense, sparse = maker.sweep(densities=(0.01,), rounds=1)
    rows = [row | {"density": None, "seconds_predicted": row["seconds_step"]} for row in (dense, sparse)]
    keys = [maker.key_of(row) for row in rows]
    measured, predicted = ({**row, "key": key} for row, key in zip(rows, keys, strict=True))
    left_out = {name for name in predicted if name.startswith("seconds_step") or name in ("samples", "curve")}
    predicted = {name: value for name, value in predicted.items() if name not in left_out} | {
        "status": "skipped",
        "run": "",
    }
    (tmp_path / run_folder.PLAN).write_text(json.dumps({"keys": keys, "dropped": {}}), encoding="utf-8")
    store.append(tmp_path / store.FILE, measured)
    run_folder.write_progress(tmp_path, run_folder.parse(b'{"name": "cut", "state": "finished"}'))
    assert results.Result(tmp_path).answer["time"]["side"] == "unknown"
    run_folder.write_predictions(tmp_path, [predicted])
    facts = check_doors(tmp_path)
    assert (facts["time"]["side"], facts["time"]["source"]) == ("sparse", "predicted")
    assert len(results.Result(tmp_path).trials) == 1, "what was not measured is no trial"


@pytest.mark.parametrize("name", ["format", "density"])
def test_filters_leave_each_estimate_and_the_answer_as_they_are(tmp_path, name):
    path = tmp_path / "all.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in maker.rich()), encoding="utf-8")
    explored = Exploration(str(path))
    facts, text = answer_of(explored.answered).facts, answer_text(explored.answered).headline
    estimates = {key_of(row): interval_of(row, "seconds_step") for row in configurations.records(explored.frame)}
    ratios = dict(ratios_of(explored.frame))
    for option in explored.filters[name]:
        explored.choose(name, option)
        left = configurations.records(explored.frame)
        assert 0 < len(left) < len(estimates)
        for row in left:
            assert interval_of(row, "seconds_step") == estimates[key_of(row)]
        assert set(ratios_of(explored.frame)) <= set(ratios.items())
        assert answer_of(explored.answered).facts == facts
        assert answer_text(explored.answered).headline == text


def key_of(row):
    """The configuration of a record, and its density."""
    return configurations.configuration_of(row), row["density"]


def ratios_of(frame):
    """The ratio to dense of each sparse configuration on its own."""
    for group in configurations.groups(frame):
        for _, contests in records_and_contests(group, "seconds_step"):
            for contest in contests:
                row = contest.sparse
                yield (configurations.configuration_of(row), contest.ratio and contest.ratio[:6])


def test_marks_and_numbers_of_a_table_are_those_of_the_estimate_that_decides():
    """A trial next to other programs measured 180 us by chance; the estimate knows better, and the table shows it."""
    rows = maker.sweep((maker.DENSE, maker.SPARSE), (0.01,), rounds=4, noise=0.02)
    lucky = [
        row | {"format": "csc", "seconds_step": 0.3 * row["seconds_step"]} for row in rows if row["format"] == "csr"
    ]
    frame = store.frame([*rows, *map(maker.disturbed, lucky[:1])])
    (group,) = configurations.groups(frame)
    (contest,) = contests_of_group(group, "seconds_step")
    tidy = results.tidy(frame).set_index("format")
    assert tidy["seconds_step"][["csr", "csc"]].idxmin() == contest.sparse["format"]
    for row in group.rows:
        assert tidy["seconds_step"][row["format"]] == interval_of(row, "seconds_step").value
        assert tidy["seconds_measured"][row["format"]] == row["seconds_step"]
    named = tidy.loc[contest.sparse["format"]]
    assert (named["ratio"], named["ratio_low"], named["ratio_high"]) == contest.ratio[:3]
    ratio = interval_of(contest.dense, "seconds_step").value / interval_of(contest.sparse, "seconds_step").value
    assert ratio == pytest.approx(contest.ratio.value, rel=1e-9), "the ratio is that of the numbers shown"
    assert comparison_facts(contest)["ratio"] == contest.ratio.value
