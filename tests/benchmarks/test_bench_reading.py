"""What is read from benchmark rows: charts, targets, reports."""

import re

import numpy as np
import pytest
from matplotlib.figure import Figure

from benchmarks import plots, tables
from benchmarks.analysis import bench as analysis
from benchmarks.analysis.performance_targets import list_targets
from benchmarks.pages import bench as bench_report
from tests.support import bench_rows as maker
from tests.support.fair_records import configuration
from tests.support.figures import said
from workbench import plots as charts_of_trials
from workbench import store

BENCH_FRAMES = {
    "suite": maker.suite(),
    "steps": maker.steps(),
    "empty": [],
    "bandwidth alone": maker.bandwidths(),
    "all failed": [maker.without(name, "timeout", "too long") for name in maker.SPEEDS],
    "ours alone": [maker.row("csr_dense")],
    "no bandwidth": [row for row in maker.suite() if row["task"] != "bandwidth"],
}


@pytest.mark.covering(targets=lambda case: {(case["name"], bool(case["rows"])), id(case["rows"])})
@pytest.mark.parametrize("name", plots.names("bench"))
@pytest.mark.parametrize("rows", BENCH_FRAMES.values(), ids=BENCH_FRAMES)
def test_charts_of_benchmarks_draw_every_frame(name, rows):
    figure, frame = Figure(figsize=(9, 6)), tables.BENCH.frame(rows)
    sentence = plots.draw(name, frame, figure)
    figure.draw_without_rendering()
    assert sentence.endswith(".")
    assert figure.axes
    plots.table(name, frame)
    for control in plots.get(name).controls:
        assert control.help
        for option in control.options(frame):
            plots.draw(name, frame, figure, **{control.name: option})


def test_charts_of_benchmarks_are_apart_from_those_of_trials():
    assert plots.names("bench") == ["competitor_ratio", "roofline"]
    assert not set(charts_of_trials.names()) & set(plots.names("bench"))


def lines_of(figure: Figure) -> dict[str, np.ndarray]:
    return {line.get_label(): line.get_ydata() for line in figure.axes[0].get_lines()}


def test_the_ratio_chart_draws_the_competitor_asked_for_its_mean_and_the_target():
    figure, frame = Figure(figsize=(9, 6)), tables.BENCH.frame(maker.suite())
    assert "2 times as fast as the fastest competitor" in plots.draw("competitor_ratio", frame, figure)
    assert "8 times as fast as SciPy" in plots.draw("competitor_ratio", frame, figure, competitor="scipy")
    levels = {label: y[0] for label, y in lines_of(figure).items() if not label.startswith("_")}
    assert levels["equal"] == 1.0
    assert levels["mean 8 x"] == pytest.approx(8.0)
    assert levels["target 6 x"] == 6.0
    legend = figure.legends[0].get_window_extent()
    assert legend.y1 <= figure.axes[0].get_window_extent().y0


def test_the_ratio_chart_of_steps_tells_batches_that_repeat_from_new_ones():
    figure, frame = Figure(figsize=(9, 6)), tables.BENCH.frame(maker.steps())
    assert plots.draw("competitor_ratio", frame, figure).startswith(
        "Over 8 configurations of step ours is 12 times as fast"
    )
    assert plots.draw("competitor_ratio", frame, figure, batches="new", competitor="torch").startswith(
        "Over 4 configurations"
    )
    assert "target 10 x" in lines_of(figure)
    plots.draw("competitor_ratio", frame, figure, batches="repeat", competitor="torch")
    assert "target 20 x" in lines_of(figure)


def test_points_of_one_width_are_on_one_line_only_where_nothing_else_sets_them_apart():
    configurations = [(cache, rows, width) for cache in ("warm", "cold") for rows in (256, 4096) for width in (1, 16)]
    rows = [
        maker.row(name, width, ratio, key=f"{cache}{count}{width}", cache=cache, rows=count, device="cuda")
        for name, ratio in maker.SPEEDS.items()
        for cache, count, width in configurations
    ]
    figure = Figure(figsize=(9, 6))
    plots.draw("competitor_ratio", tables.BENCH.frame(rows), figure)
    labels = figure.axes[0].get_legend_handles_labels()[1]
    results = ["uniform, R 256, warm", "uniform, R 4,096, warm", "uniform, R 256, cold", "uniform, R 4,096, cold"]
    assert set(results) <= set(labels)
    assert "on cuda; cache cold; cache warm; bench-1" in said(figure)
    alone = [row for row in rows if row["key"] == "warm25616"]
    plots.draw("competitor_ratio", tables.BENCH.frame(alone), figure)
    points = [line.get_xdata().tolist() for line in figure.axes[0].get_lines() if len(line.get_xdata()) == 1]
    assert [16] in points


def test_the_roofline_draws_measured_roofs_and_hollow_competitors():
    figure, frame = Figure(figsize=(9, 6)), tables.BENCH.frame(maker.suite())
    plots.draw("roofline", frame, figure)
    lines = figure.axes[0].get_lines()
    roofs = {line.get_label(): line for line in lines if line.get_label().startswith(("stream", "gather"))}
    assert set(roofs) == {
        *("stream, 512 MiB: 30 GB/s", "stream, 8 MiB: 100 GB/s", "stream, 1 MiB: 200 GB/s"),
        *("gather, 512 MiB: 15 GB/s", "gather, 8 MiB: 50 GB/s", "gather, 1 MiB: 100 GB/s"),
    }
    slope = roofs["stream, 512 MiB: 30 GB/s"]
    np.testing.assert_allclose(slope.get_ydata() / slope.get_xdata(), 3e10)
    assert "roofs measured in the same run" in said(figure)
    plots.draw("roofline", tables.BENCH.frame([maker.row("csr_dense")]), figure)
    assert "roofs" not in said(figure)
    faces = {line.get_label(): line.get_markerfacecolor() for line in lines}
    assert faces["ours"] != "white"
    assert faces["SciPy"] == faces["PyTorch (MKL)"] == "white"


def test_targets_are_met_or_missed_by_how_much():
    found = {target.what: target for target in list_targets(tables.BENCH.frame(maker.suite() + maker.steps()))}
    assert found["CSR @ dense against MKL (PyTorch), geometric mean"].met
    assert found["CSR @ dense against SciPy, geometric mean"].measured == "8 x over 3 configurations"
    repeat = found["whole step, batches that repeat, against PyTorch, geometric mean"]
    assert (repeat.met, repeat.measured) == (True, "30 x over 4 configurations")
    against_tensorflow = found["whole step, batches that repeat, against TensorFlow, geometric mean"]
    assert against_tensorflow.measured == "12 x over 4 configurations"
    share = next(target for what, target in found.items() if what.startswith("share of the bound"))
    assert share.met
    slow = [maker.row("csr_dense"), maker.row("torch.csr_dense", ratio=1.5)]
    missed = list_targets(tables.BENCH.frame(slow))[0]
    assert (missed.met, missed.measured) == (False, "1.5 x over 1 configuration, 25 % short")
    assert {target.met for target in list_targets(tables.BENCH.frame())} == {None}


def test_targets_of_steps_as_users_take_them_are_of_few_rows_and_of_new_batches_by_those_that_repeat():
    def rows(shape: str, **seconds: float) -> list[dict]:
        configuration = {"task": "step", "suite": "step", "shape": shape, "optimizer": "sgd", "side": "ours"}
        return [
            maker.row("ours, training", 1, key=f"{shape}{batches}", batches=batches, seconds=each, **configuration)
            for batches, each in seconds.items()
        ]

    made = rows("32 rows of 14", repeat=1e-5, new=7e-5) + rows("power law", repeat=1e-3, new=1.5e-3)
    found = {target.what: target for target in list_targets(tables.BENCH.frame(made))}
    few = found["whole step of 32 rows of 14 entries, cut from the rows"]
    assert (few.wanted, few.measured, few.met) == ("≤ 60 µs", "70 µs (ours, training); 1 of 1 are above", False)
    name = "whole step, cut from the rows by one that repeats, {}, geometric mean"
    by_training = found[name.format("ours, training")]
    assert (by_training.measured, by_training.met) == ("1.5 x over 1 configuration, at most 1.5 x", True)
    assert found[name.format("ours, module")].met is None


def test_a_later_row_replaces_an_earlier_one_but_no_failure_a_result():
    first, second = maker.row("csr_dense", seconds=1.0), maker.row("csr_dense", seconds=2.0)
    failed = maker.without("csr_dense", "timeout", "too long")
    frame = analysis.newest_records(tables.BENCH.frame([first, second, failed]))
    assert frame["seconds"].tolist() == [2.0]


def test_the_reports_say_targets_charts_and_what_has_no_time(tmp_path):
    for row in maker.suite() + maker.steps():
        tables.BENCH.append(tmp_path / tables.BENCH.file, row)
    page = bench_report.write(tmp_path).read_text()
    assert "CSR @ dense against MKL" in page
    assert page.count("<svg") == 4, "ratio and roofline of the product, two ratios of the step"
    assert "Unavailable because it is not installed" in page
    assert not re.search(r'(src|href)="http', page)
    text = bench_report.write(tmp_path, markdown=True).read_text()
    assert "| CSR @ dense against SciPy, geometric mean | ≥ 6 x | 8 x over 3 configurations | met |" in text
    assert bench_report.write(tmp_path, tmp_path / "other.html").name == "other.html"


def test_a_report_has_the_targets_of_its_suite_alone_and_a_file_of_rows_its_machine(tmp_path):
    (tmp_path / "machine.json").write_text('{"id": "bench-1", "cores": 2}')
    for row in maker.steps():
        tables.BENCH.append(tmp_path / "loops.jsonl", row | {"suite": "pytorch"})
        tables.BENCH.append(tmp_path / "steps.jsonl", row | {"suite": "step"})
    text = bench_report.write(tmp_path / "loops.jsonl", markdown=True).read_text()
    assert text.startswith("# Training loops of PyTorch")
    assert "There are no performance targets for these records." in text
    assert "## Goals" not in text
    assert "| id | bench-1 |\n| cores | 2 |\n| recorded | 2026-01-02 |" in text
    text = bench_report.write(tmp_path / "steps.jsonl", tmp_path / "steps.md").read_text()
    assert "whole step, a new batch each" in text
    assert "CSR @ dense against" not in text


def test_a_page_names_the_machine_and_the_versions_of_its_records_though_the_folder_has_newer_ones(tmp_path):
    (tmp_path / "machine.json").write_text('{"id": "m", "cores": 2, "system": "Linux 7", "versions": {"numpy": "2.4"}}')

    def table(**known):
        (tmp_path / tables.FAIR.file).unlink(missing_ok=True)
        for record in configuration((2e-3, 1e-2), (1e-3, 1e-2)):
            tables.FAIR.append(tmp_path / tables.FAIR.file, record | {"time": "2026-01-02T03:04:05"} | known)
        (path,) = bench_report.write_pages(tmp_path)
        return re.findall(
            r"^\| ([^|]+) \| ([^|]+) \|$", path.read_text("utf-8").partition("| what | value |")[2], re.MULTILINE
        )[1:]

    dated = ("recorded", "2026-01-02")
    same = [("id", "m"), ("cores", "2"), ("system", "Linux 7"), ("versions: numpy", "2.4"), dated]
    assert table(versions={"numpy": "2.4"}) == table(versions={}) == same
    assert table(versions={"numpy": "2.3"}) == [*same[:2], ("versions: numpy", "2.3"), dated], "its system is unknown"
    assert table(machine="other", versions={"numpy": "2.4"}) == [("id", "other"), *same[3:]]
    assert table(machine="") == same[:-1], "without a machine in the records, the folder's file is all there is"


def test_the_pages_of_a_folder_of_results_are_written_again_from_its_records(tmp_path):
    for row in maker.steps():
        tables.BENCH.append(tmp_path / "bench-step.jsonl", row | {"suite": "step"})
    for record in configuration((2e-3, 1e-2), (1e-3, 1e-2)):
        tables.FAIR.append(tmp_path / tables.FAIR.file, record)
    both = [tmp_path / "bench-step.md", tmp_path / "bench-fair.md"]
    assert bench_report.write_pages(tmp_path) == both
    assert [path.read_text("utf-8").partition("\n")[0] for path in both] == [
        "# Training steps against those of other libraries",
        "# Both sides compared with the best independent ones",
    ]
    for path in both:
        path.unlink()
    assert bench_report.write_pages(tmp_path / tables.FAIR.file) == both[1:]
    assert not both[0].exists()
    (tmp_path / "empty").mkdir()
    assert bench_report.write_pages(tmp_path / "empty") == []


def test_a_suite_with_a_table_of_its_own_has_no_page_of_html(tmp_path):
    (tmp_path / f"{tables.EPOCHS.file}.gz").write_bytes(b"")
    with pytest.raises(
        store.RowError, match=rf"{tables.EPOCHS.file} has the records of a suite .*\nType python -m benchmarks report"
    ):
        bench_report.write(tmp_path / f"{tables.EPOCHS.file}.gz", tmp_path / "x.html")
