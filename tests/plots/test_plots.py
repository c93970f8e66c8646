"""Charts: registered by being in the folder, drawn on the figure given, with nothing that failed left out silently."""

import subprocess
import sys
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from tests.plots.test_bounds_chart import swept as bounds_rows
from tests.support import rows as maker
from tests.support.figures import drawn, notes, said, texts
from tests.support.size_rows import swept as swept_sizes
from workbench import data, plots, store
from workbench.analysis import breakeven, pool_rounds
from workbench.analysis.configurations import records
from workbench.analysis.intervals import shown_value
from workbench.plots import style
from workbench.plots.chart import MESSAGE, Chart, Control
from workbench.plots.phases import PHASES

FRAMES = {
    "rich": maker.rich(),
    "plain": maker.sweep(),
    "empty": [],
    "one density": maker.sweep(densities=(0.05,)),
    "natural density": [row | {"density": None} for row in maker.sweep(densities=(0.05,))],
    "no dense": [row for row in maker.sweep() if row["format"] != "dense"],
    "dense unfit": [maker.unfit(row) if row["format"] == "dense" else row for row in maker.sweep()],
    "all failed": [maker.failed(row, "timeout", "no result after 60 s") for row in maker.sweep()],
    "hostile names": maker.sweep(dataset="$\\frac{1}$ <b>&amp; 100 %"),
}

BUSY = [maker.disturbed(row) if row["status"] == "ok" else row for row in maker.rich()]


def targets_of_frames(case):
    """Return the targets of a case: each chart of rows and of none, each frame by one chart."""
    return {(case["name"], bool(case["rows"])), id(case["rows"])}


@pytest.mark.covering(targets=targets_of_frames)
@pytest.mark.parametrize("name", plots.names())
@pytest.mark.parametrize("rows", FRAMES.values(), ids=FRAMES)
def test_every_chart_draws_every_frame_and_says_what_it_shows(name, rows):
    figure, sentence = drawn(name, rows)
    assert sentence.endswith(".")
    assert figure.axes
    assert min(text.get_fontsize() for text in texts(figure)) >= 9
    table = plots.table(name, store.frame(rows))
    assert table.empty == (not rows)


@pytest.mark.parametrize("name", plots.names())
def test_every_choice_of_every_control_draws(name):
    frame = pool_rounds(store.frame(maker.rich()))
    for control in plots.get(name).controls:
        assert control.help
        assert control.initial(frame) in control.options(frame)
        for option in control.options(frame):
            figure = Figure(figsize=(9, 6))
            assert plots.draw(name, frame, figure, **{control.name: option}).endswith(".")
            assert figure.axes
        figure.draw_without_rendering()  # of the last one: how it is laid out is the same for all, and takes longest


@pytest.mark.parametrize("name", plots.names())
def test_an_unknown_control_or_choice_lists_what_is_known(name):
    with pytest.raises(ValueError, match=f"chart {name} has no control 'colour'; it has: group"):
        drawn(name, maker.sweep(), colour="red")
    with pytest.raises(ValueError, match=f"{name}: group is 'width 3'; allowed: "):
        drawn(name, maker.sweep(), group="width 3")


def test_an_unknown_chart_lists_the_known():
    with pytest.raises(ValueError, match=r"Unknown chart 'pie'.*Expected one of: .*time_density"):
        plots.get("pie")


def test_every_file_of_the_folder_with_a_chart_is_registered_under_its_name():
    files = [file for file in Path(plots.__file__).parent.glob("*.py") if "register_chart(" in file.read_text()]
    names = {name for rows in plots.POOLED for name in plots.names(rows)}
    assert {file.stem for file in files} - {"chart"} == names


def test_controls_must_be_the_parameters():
    control = Control("group", "which", ("a",), "a")

    def draw(frame, figure, *, density):
        return ""

    def table(frame, *, group):
        return pd.DataFrame()

    with pytest.raises(ValueError, match=r"chart c declares the controls \['group'\]; draw takes \['density'\]"):
        Chart("c", "C", draw, table, (control,))
    assert Chart("c", "C", lambda frame, figure, *, group: "", table, (control,)).name == "c"


def test_drawing_again_replaces_what_was_there():
    figure = Figure()
    for _ in range(2):
        plots.draw("time_density", store.frame(maker.sweep()), figure)
    assert len(figure.axes) == 1


def test_time_density_draws_the_numbers_and_the_break_even():
    figure, sentence = drawn("time_density", maker.sweep())
    lines = [line for line in figure.axes[0].get_lines() if len(set(line.get_xdata())) > 1]
    dense, sparse = (line for line in lines if line.get_linewidth() == style.BOLD)
    frame = pool_rounds(store.frame(maker.sweep()))
    for line, name in ((dense, "dense"), (sparse, "csr")):
        of = frame[frame["format"] == name]
        np.testing.assert_allclose(np.asarray(line.get_xdata(), float), of["density_measured"])
        np.testing.assert_allclose(
            np.asarray(line.get_ydata(), float), [shown_value(row, "seconds_step") for row in records(of)], rtol=1e-12
        )
    (even,) = breakeven(store.frame(maker.sweep()))
    assert "Faster: sparse from 0.1 to 3 %, dense from 10 to 30 %" in said(figure)
    assert sentence == "Faster: sparse from 0.1 to 3 %, dense from 10 to 30 %."
    assert "width 16, 256 rows a batch" in said(figure)
    assert notes(figure) == [f"break-even {even.place.removesuffix(' density')}"]


MEASURED = {
    "quiet": store.frame(maker.rich()),
    "busy": store.frame(BUSY),
    "many": store.frame(maker.sweep(maker.BOTH_AT_THEIR_BEST)),
    "one density": store.frame(maker.sweep(maker.BOTH_AT_THEIR_BEST, (0.05,))),
    "bounds": store.frame(bounds_rows()),
}
PICTURES = [
    *(("trials", name, frame) for name in plots.names() for frame in MEASURED if (name, frame).count("bounds") != 1),
    *(("sizes", name, "sizes") for name in plots.names("sizes")),
    *(("sizes", name, "busy sizes") for name in plots.names("sizes")),
    *(("profile", name, "profile") for name in plots.names("profile")),
    *(("runs", name, "two runs") for name in plots.names("runs")),
]
"""Kind of rows, chart, records: every chart with all records that it reads."""


def frame_of(records):
    """The frame of synthetic records by their name."""
    if records in MEASURED:
        return MEASURED[records]
    if records == "profile":
        drawn = data.load("power_law", rows=300, features=400, density=0.03, cache=False)
        return pd.DataFrame([asdict(data.profile(drawn))])
    if records == "two runs":
        slower = replace(maker.SPARSE, slope=0.2)
        frames = {"old (before)": maker.sweep(), "new (after)": maker.sweep((maker.DENSE, slower))}
        return pd.concat([store.frame(rows).assign(of_run=run) for run, rows in frames.items()], ignore_index=True)
    return store.frame([maker.disturbed(row) if records.startswith("busy") else row for row in swept_sizes()])


def apart(boxes, low, high):
    """Whether boxes do not meet along an axis, of which these are the names of the edges."""
    edges = sorted((getattr(box, low), getattr(box, high)) for box in boxes)
    return all(first[1] <= second[0] for first, second in pairwise(edges))


@pytest.mark.covering(targets=lambda case: {(case["name"], case["size"]), case["records"]})
@pytest.mark.parametrize(("rows", "name", "records"), PICTURES)
@pytest.mark.parametrize("size", [(4.2, 5.2), (12.8, 7.2)], ids=["420 px", "1,280 px"])
def test_a_plot_has_most_of_its_picture_and_its_texts_are_apart(rows, name, records, size):
    figure = Figure(figsize=size)
    plots.draw(name, frame_of(records), figure)
    figure.draw_without_rendering()
    if any(axes.get_gid() == MESSAGE for axes in figure.axes):
        return
    heights = [axes.get_window_extent().height for axes in figure.axes]
    is_stacked = rows == "profile" and size[0] < 7
    assert (sum(heights) if is_stacked else min(heights)) >= (0.55 if is_stacked else 0.6) * figure.bbox.height
    assert not figure.legends
    title = figure.findobj(lambda artist: getattr(artist, "get_text", str)() == figure.get_suptitle())[0]
    for axes in figure.axes:
        assert axes.get_legend() is None
        for axis, low, high in ((axes.xaxis, "x0", "x1"), (axes.yaxis, "y0", "y1")):
            view = sorted(axis.get_view_interval())
            ticks = [tick for tick in axis.get_major_ticks() if view[0] <= tick.get_loc() <= view[1]]
            assert apart([tick.label1.get_window_extent() for tick in ticks if tick.label1.get_text()], low, high)
        boxes = [Text.get_window_extent(text) for text in axes.texts if text.get_text()]
        assert not [1 for box in boxes if box.overlaps(title.get_window_extent())]
        ends = [Text.get_window_extent(text) for text in axes.texts if text.get_gid() == style.END]
        assert apart(ends, "y0", "y1")
        assert all(box.x1 <= figure.bbox.x1 + 1 for box in ends)


def test_two_runs_are_drawn_over_each_other_the_first_dotted():
    figure = Figure(figsize=(9, 6))
    sentence = plots.draw("runs", frame_of("two runs"), figure)
    assert sentence.startswith("Time a step of old (before) and new (after): the best")
    lines = {line.get_label(): line for line in figure.axes[0].get_lines() if line.get_label() != "_"}
    assert lines.keys() == {
        f"_{run}: {side}" for run in ("old (before)", "new (after)") for side in ("sparse", "dense")
    }
    assert {name.startswith("_old"): line.get_linestyle() for name, line in lines.items()} == {True: ":", False: "-"}
    before, after = (lines[f"_{run}: sparse"].get_ydata() for run in ("old (before)", "new (after)"))
    np.testing.assert_allclose(after[-1] / before[-1], 2, rtol=0.1)
    table = plots.table("runs", frame_of("two runs"), measure="memory")
    assert set(table["run"]) == {"old (before)", "new (after)"}
    assert plots.draw("runs", frame_of("two runs").query("status == 'none'"), figure) == plots.EMPTY


def test_axes_carry_units():
    figure, _ = drawn("time_density", maker.sweep())
    axes = figure.axes[0]
    assert {label.get_text() for label in axes.get_xticklabels()} >= {"0.1 %", "1 %", "10 %"}
    assert {label.get_text() for label in axes.get_yticklabels()} >= {"1 ms", "10 ms"}
    assert "100 MB" in {t.get_text() for t in drawn("memory_density", maker.sweep())[0].axes[0].get_yticklabels()}


def test_cells_without_a_result_are_marked_and_counted():
    figure, _ = drawn("time_density", maker.rich())
    assert "no result: 1 timeout, 1 memory and 1 unsupported" in said(figure)
    crosses = [line for line in figure.axes[0].get_lines() if line.get_marker() == "x" and len(line.get_xdata())]
    assert sorted(line.get_xdata()[0] for line in crosses) == [0.001, 0.1, 0.3]
    table = plots.table("time_density", store.frame(maker.rich()))
    assert (table["result"] == "timeout: no result after 60 s").sum() == 1
    assert len(table) == 42
    assert "no result: memory, needs 5.2 GB" in said(drawn("phases", maker.rich(), density="30 %")[0])


def test_dense_that_did_not_fit_is_shown_with_the_bytes_it_needs():
    assert "dense needs 82 GB, the limit is 16 GB" in said(drawn("time_density", FRAMES["dense unfit"])[0])
    figure, _ = drawn("memory_density", FRAMES["dense unfit"])
    assert "the limit is 16 GB" in said(figure)
    crosses = [line for line in figure.axes[0].get_lines() if line.get_marker() == "x"]
    assert {line.get_ydata()[0] for line in crosses} == {82e9}


def test_the_largest_group_is_shown_first_and_another_can_be_chosen():
    assert "width 16" in said(drawn("time_density", maker.rich())[0])
    assert "width 64" in said(drawn("time_density", maker.rich(), group="width 64")[0])


def test_phases_add_up_and_name_what_is_left_out():
    figure, _ = drawn("phases", maker.sweep(densities=(0.05,)))
    bars = [bar for bar in figure.axes[0].patches if bar.get_width()]
    dense = pool_rounds(store.frame(maker.sweep(densities=(0.05,)))).iloc[0]
    total = sum(bar.get_width() for bar in bars if round(bar.get_y() + bar.get_height() / 2) == 0)
    assert total == pytest.approx(dense["seconds_step"])
    rows = maker.sweep(
        densities=(0.05,), seconds_slice=0.0, seconds_convert=0.0, seconds_plan=0.0, seconds_prepare=2e-3
    )
    assert "+ 2 ms a batch, once" in said(drawn("phases", rows)[0])
    few = [text.get_text() for text in drawn("phases", rows)[0].axes[0].texts if text.get_gid() is None]
    assert any("\n+ 2 ms a batch, once" in text for text in few)
    laws = (*maker.BOTH_AT_THEIR_BEST, replace(maker.SPARSE, gradient="dense"))
    many = maker.sweep(laws, (0.05,), seconds_slice=0.0, seconds_convert=0.0, seconds_plan=0.0, seconds_prepare=2e-3)
    notes = [text.get_text() for text in drawn("phases", many)[0].axes[0].texts if text.get_gid() is None]
    assert any("+ 2 ms a batch, once" in text for text in notes)
    assert not any("\n" in text for text in notes), "the lines of neighbours would overlap"
    scale = plots.get("phases").controls[2]
    assert scale.initial(store.frame(maker.sweep(densities=(0.05,)))) == "time"
    assert scale.initial(store.frame(maker.sweep(densities=(0.001,)))) == "share", "one bar would be too short to read"
    figure, _ = drawn("phases", maker.sweep(densities=(0.05,)), scale="share")
    assert max(bar.get_x() + bar.get_width() for bar in figure.axes[0].patches) == pytest.approx(1.0)


@pytest.mark.parametrize("count", [5, 8, 10])
def test_the_name_of_a_phase_is_written_where_there_is_room_for_it(count):
    phases = dict.fromkeys(list(PHASES)[-count:], 1e-3)
    rows = [
        row | {f"seconds_{name}": phases.get(name, 0.0) for name in PHASES}
        for row in maker.sweep(
            (maker.DENSE, maker.Law(fixed=8e-3, slope=0.0)), execution="cuda_graph", device="cuda", noise=1e-3
        )
    ]
    figure = Figure(figsize=(9, 6))
    plots.draw("phases", store.frame(rows), figure)
    FigureCanvasAgg(figure).draw()
    axes = figure.axes[0]
    lengths = [bar.get_window_extent().width for bar in axes.patches if bar.get_width()]
    names = [text.get_window_extent().width for text in axes.texts if text.get_text() in PHASES]
    assert names
    assert max(names) < min(lengths)


@pytest.mark.parametrize("size", [(9, 6), (4.2, 6)])
def test_texts_of_disturbed_phases_are_apart_inside_the_figure_and_dark_on_pale(size):
    rows = [row | {"status": "disturbed"} for row in maker.sweep(densities=(0.05,))]
    figure = Figure(figsize=size)
    plots.draw("phases", store.frame(rows), figure)
    FigureCanvasAgg(figure).draw()
    texts = [text for text in figure.axes[0].texts if text.get_gid() is None]
    boxes = [Text.get_window_extent(text) for text in texts]  # without the lines of annotations
    assert max(box.x1 for box in boxes) < figure.bbox.x1
    assert not [1 for k, box in enumerate(boxes) for other in boxes[:k] if box.overlaps(other)]
    assert {text.get_color() for text in texts} == {"black"}


def test_a_loss_that_was_not_finite_breaks_the_line():
    rows = maker.sweep(densities=(0.05,))
    rows[1]["curve"][5][1] = None
    figure, _ = drawn("learning", rows)
    assert 1 in {int(np.isnan(line.get_ydata()).sum()) for line in figure.axes[0].get_lines()}


def test_only_the_figure_is_used_and_importing_plots_loads_no_matplotlib():
    code = "import sys, workbench.plots as p; assert 'matplotlib' not in sys.modules, 'early'; p.names(); "
    late = "assert 'matplotlib' in sys.modules; assert 'matplotlib.pyplot' not in sys.modules, 'pyplot'"
    assert fresh(code + late).returncode == 0
    assert "early" in fresh("import matplotlib; " + code).stderr, "the check itself must be able to fail"


def fresh(code):
    root = Path(plots.__file__).parent.parent.parent
    return subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)


def test_a_frame_pooled_before_draws_the_same():
    once, twice = (
        plots.table("time_density", f) for f in (store.frame(maker.rich()), pool_rounds(store.frame(maker.rich())))
    )
    pd.testing.assert_frame_equal(once, twice)


def test_the_break_even_that_is_marked_is_that_of_the_advice():
    laws = (maker.DENSE, maker.Law(engine="vendor", update="lazy"), maker.Law(fixed=1e-5, slope=1e-3))
    both = maker.sweep(laws)
    figure, sentence = drawn("time_density", both)
    assert sentence == "Faster: sparse from 0.1 to 30 %."
    assert notes(figure) == []


def test_lines_that_end_far_apart_are_drawn_over_a_logarithmic_time():
    scales = [drawn("learning", maker.sweep(densities=(at,)))[0].axes[0].get_xscale() for at in (0.05, 0.001)]
    assert scales == ["linear", "log"]
