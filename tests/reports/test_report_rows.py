"""What a report has besides text: samples and commands of configurations, values on charts, answers for programs."""

import json
import re
import sys
from dataclasses import replace

import pandas as pd
import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

from tests.support import rows as maker
from tests.support.expected_ratios import contests
from workbench import plots, store
from workbench.analysis import configurations
from workbench.analysis.standings import make_standings
from workbench.command import cli, exit_codes
from workbench.reports import chart_svg, export, report, report_tables, results

NASTY = '</td></script><script>alert("x")</script> | `x` [a](http://evil.example)'


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A file of rows of one sweep."""
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    for row in maker.sweep(densities=(0.01, 0.1), samples=100):
        store.append(path, row)
    return path


def test_every_configuration_has_its_rounds_its_samples_and_its_command(stored):
    groups = configurations.groups(store.frame(store.read(stored)))
    table = report_tables.table(groups, report_tables.anchors(groups))
    assert len(table["lines"]) == 4
    assert table["run"] == "r1", "the only run is said once, above the table"
    for line in table["lines"]:
        (rounds,) = line["rounds"]
        assert rounds.startswith(": ")
        assert rounds.count(",") == 3
        assert line["samples"].endswith("µs (one in 17 of 400)")
        assert line["command"].startswith(
            "workbench train --dataset synthetic --model logistic --optimizer sgd --rows 20000"
        )
    assert len({line["anchor"] for line in table["lines"]}) == 4


def test_each_of_several_runs_is_named_with_its_rounds_and_a_missing_meter_is_said_once():
    rows = [{**row, "run": run} for run in ("r1", "r2") for row in maker.sweep(densities=(0.01,))]
    rows = [{**row, "joules_step": None, "meter": "no meter"} for row in rows]
    groups = configurations.groups(store.frame(rows))
    table = report_tables.table(groups, report_tables.anchors(groups))
    assert table["run"] == ""
    assert {one.partition(":")[0] for line in table["lines"] for one in line["rounds"]} == {" of run r1", " of run r2"}
    assert table["energy"] == "no meter"
    assert "energy a step" not in [name for name, _ in table["columns"]]


def test_columns_that_no_configuration_fills_are_left_out_and_groups_are_numbered():
    rows = maker.sweep(densities=(0.01,), quality=None) + maker.sweep(densities=(0.01,), quality=None, width=64)
    groups = configurations.groups(store.frame(rows))
    table = report_tables.table(groups, report_tables.anchors(groups))
    names = [name for name, _ in table["columns"]]
    assert names == ["configuration", "density", "status", "time a step", "measured", "peak memory", "spread", "group"]
    assert table["groups"] == [group.label for group in groups]
    assert [line["cells"][-1][0] for line in table["lines"]] == ["1", "1", "2", "2"]


LINES = tuple(
    replace(maker.SPARSE, engine=engine, gradient=gradient, update=update)
    for engine in ("ours", "vendor")
    for gradient, update in (
        ("fused", "lazy"),
        ("row_sparse", "lazy"),
        ("row_sparse", "standard"),
        ("dense", "standard"),
    )
)
"""Eight sparse candidates, too many for a column each."""


def standings(lines, densities):
    rows = maker.sweep((maker.DENSE, *lines), densities)
    (group,) = configurations.groups(store.frame(rows))
    return report_tables.tables(group, {})[0]


@pytest.mark.parametrize(("lines", "densities"), [(LINES[:2], (0.01,)), (LINES, tuple(k / 100 for k in range(1, 10)))])
def test_few_candidates_have_columns_and_so_have_many_at_more_densities(lines, densities):
    data = standings(lines, densities)
    assert (data["head"], data["last"], len(data["columns"])) == ("density", ["verdict"], 1 + len(lines))
    assert [len(line["places"]) for line in data["lines"]] == [1 + len(lines)] * len(densities)


def test_many_candidates_at_few_densities_have_rows_and_the_verdict_is_the_last():
    data = standings(LINES, (0.01, 0.1))
    assert (data["head"], data["columns"], data["last"]) == ("configuration", ["1 %", "10 %"], [])
    assert len(data["lines"]) == 1 + len(LINES) + 1
    plain = report_tables.plain(data)
    assert plain["columns"] == ["configuration", "1 %", "10 %"]
    assert plain["rows"][-1][0] == "verdict"
    group = configurations.groups(store.frame(maker.sweep((maker.DENSE, *LINES), (0.01, 0.1))))[0]
    assert plain["rows"][-1][1:] == [line.verdict for line in make_standings(group, "seconds_step").lines]
    assert len(set(plain["rows"][-1][1:])) == 2, "another answer at 10 %"
    assert all(len(row) == 3 and all(row) for row in plain["rows"])


@pytest.mark.usefixtures("no_charts")
def test_the_verdict_table_links_each_number_to_its_row(tmp_path, stored):
    page = export.write_report(stored, tmp_path / "a.html").read_text()
    linked = set(re.findall(r'<a href="#(cell-\d+)">', page))
    assert linked == {f"cell-{number}" for number in range(1, 5)}
    assert all(f'<tr id="{place}">' in page for place in linked)


def test_a_charts_points_say_their_values_where_the_pointer_rests():
    figure = Figure(figsize=(9, 6))
    plots.draw("time_density", store.frame(maker.sweep(noise=0.01)), figure)
    figure.savefig("/dev/null", format="svg")
    marks = str(chart_svg.tooltips(figure))
    titles = re.findall(r"<title>([^<]*)</title>", marks)
    assert sum(title.startswith("dense: ") for title in titles) == len(maker.DENSITIES)
    assert any(re.fullmatch(r"sparse: 1 %, 1\.\d+ ms \(95 %: .* ms to .* ms\)", title) for title in titles)
    places = [float(x) for x in re.findall(r'cx="([\d.]+)"', marks)]
    assert all(0 < x < 9 * 72 for x in places)


def test_an_interactive_report_without_plotly_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(export.ExportError, match=r"pip install 'sparse-workbench\[lab\]'"):
        report.html(store.frame(maker.sweep()), tmp_path / "a.html", title="t", command="c", machine={},
                    interactive=True)  # fmt: skip


def test_bars_say_their_values_too():
    figure = Figure(figsize=(9, 6))
    plots.draw("phases", store.frame(maker.sweep((maker.DENSE, maker.SPARSE), (0.01,))), figure)
    figure.savefig("/dev/null", format="svg")
    titles = re.findall(r"<title>([^<]*)</title>", str(chart_svg.tooltips(figure)))
    assert any(title.startswith("sparse") and ", forward: " in title for title in titles)


def test_names_that_would_break_a_page_are_text_in_rows_values_and_markdown(tmp_path):
    rows = maker.sweep(densities=(0.01,), dataset=NASTY, quality_name=NASTY, run=NASTY)
    page = report.html(store.frame(rows), tmp_path / "a.html", title="t", command="c", machine={}).read_text()
    assert page.count("<script>") == 1
    assert '<script>alert("x")' not in page.replace("&#34;", '"')
    assert "](http://evil.example)" not in report.markdown(
        store.frame(rows), tmp_path / "a.md", title="t", command="c", machine={}
    ).read_text().replace("\\]", "")


def test_rows_are_written_as_csv_and_parquet_and_several_runs_as_one_report(tmp_path, stored):
    table = pd.read_csv(export.write_report(stored, tmp_path / "rows.csv"))
    assert (len(table), list(table.columns)) == (16, list(store.COLUMNS))
    pytest.importorskip("pyarrow")
    kept = pd.read_parquet(export.write_report(stored, tmp_path / "rows.parquet"))
    assert json.loads(kept["samples"][0]) == pytest.approx(store.read(stored)[0]["samples"])
    both = export.write_report([stored, stored], tmp_path / "both.md").read_text()
    assert f"workbench report {stored.name} {stored.name}" in both.replace("\\", "")
    with pytest.raises(export.ExportError, match=r"may end in \.html, \.md, \.csv, \.parquet"):
        export.write_report(stored, tmp_path / "rows.xlsx")


def test_a_run_is_put_into_a_folder_of_results_and_another_machines_is_refused(tmp_path):
    run, folder = tmp_path / "run", tmp_path / "results"
    run.mkdir()
    rows = maker.sweep(densities=(0.01, 0.1))
    for row in rows:
        store.append(run / "trials.jsonl", row)
    (run / "spec.json").write_text('{"name": "tiny"}')
    (run / "plan.json").write_text(json.dumps({"keys": [row["key"] for row in rows], "dropped": {}}))
    (run / "machine.json").write_text('{"id": "bench-1"}')
    folder.mkdir()
    for old in ("tiny-time_density-width-4.svg", "tiny-phases-of-mine.txt", "other-time_density.svg"):
        (folder / old).write_text("old")
    names = {path.name for path in results.put(run, folder)}
    assert not (folder / "tiny-time_density-width-4.svg").exists(), "a chart that the run no longer has"
    assert (folder / "tiny-phases-of-mine.txt").exists()
    assert (folder / "other-time_density.svg").exists()
    assert {"tiny.jsonl", "machine.json", "tiny-report.html", "tiny-report.md", "tiny-time_density.svg"} <= names
    assert "tiny-bounds.svg" not in names, "a chart that has nothing to show is no file"
    assert store.read(folder / "tiny.jsonl") == store.read(run)
    (run / "machine.json").write_text('{"id": "bench-2"}')
    with pytest.raises(export.ExportError, match="has results of the machine bench-1; this run is of bench-2"):
        results.put(run, folder)
    with pytest.raises(export.ExportError, match="is no run folder"):
        results.put(folder, tmp_path / "other")


def test_a_chart_that_has_nothing_to_show_is_a_sentence(tmp_path, stored):
    page = export.write_report(stored, tmp_path / "a.html").read_text()
    assert "<p>Bounds of kernels are not known" in page
    assert not re.search(r'id="bounds-\d+-title"', page)


def test_a_chart_takes_no_more_room_where_the_name_of_its_group_is_long():
    sizes = []
    for name in ("a", "a" * 60):
        frame = store.frame(maker.sweep(densities=(0.01, 0.1), rounds=2, dataset=name))
        figure = Figure(figsize=report.FIGURE_INCHES)
        sentence = plots.draw("time_density", frame, figure)
        sizes.append(len(chart_svg.inline(figure, "time_density-1", "Time", sentence)))
    assert sizes[1] < 1.1 * sizes[0]


def test_a_machine_is_told_in_words_and_its_versions_once():
    record = {"bytes_memory": 25_276_510_208, "numba_threading_layer": "omp", "versions": {"numpy": "2.4"}}
    several = report._of_machine({"first": record, "second": {"gpu": {"bytes_memory": None}}})
    assert report._of_machine(record) == [("memory", "25 GB"), ("numba threading layer", "omp")]
    assert [name for name, _ in several] == ["first: memory", "first: numba threading layer", "second: gpu: memory"]


def test_the_verdict_table_marks_what_is_doubtful_beside_the_other_configurations_and_says_what_an_empty_place_is():
    rows = maker.sweep(rounds=6, noise=0.2, shared=0.0)
    left = [row for row in rows if (row["format"], row["density"]) != ("csr", 0.001)]
    times, _ = report_tables.tables(configurations.groups(store.frame(left))[0], {})
    assert not [place for line in times["lines"] for place in line["places"] if "spread" in place["doubt"]]
    assert times["legend"][-1] == "empty: not measured there"
    noisy = [row for row in rows if (row["format"], row["density"]) == ("csr", 0.01)]
    for row in noisy[::2]:
        row["seconds_step"] *= 8
    times, _ = report_tables.tables(configurations.groups(store.frame(rows))[0], {})
    [doubt] = [place["doubt"] for line in times["lines"] for place in line["places"] if "spread" in place["doubt"]]
    assert doubt.endswith("% is usual here")
    assert "empty" not in times["legend"][-1]


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
