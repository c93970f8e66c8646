"""Charts with several dense candidates: names and looks that tell them apart, and no more lines than say something."""

from dataclasses import replace

from matplotlib.figure import Figure

from tests.support import rows as maker
from workbench import plots, store
from workbench.analysis import configurations
from workbench.plots import density, style

MANY = (
    *maker.BOTH_AT_THEIR_BEST,
    replace(maker.SERIAL, launch="epoch", fixed=4.6e-3),
    replace(maker.HELD_AS_CSR, launch="kernels", fixed=8.5e-3),
    replace(maker.HELD_AS_CSR, hold="uint8", fixed=4.5e-3, slope=0.0, bytes_fixed=28e6, bytes_slope=0.0),
)


def swept(laws=MANY):
    return store.frame(maker.sweep(laws, noise=0.003))


def legend(name, frame):
    figure = Figure(figsize=(9, 6))
    plots.draw(name, frame, figure)
    return [text.get_text() for text in figure.legends[0].get_texts()]


def dense_of(texts):
    return [text for text in texts if text.startswith("dense")]


def test_every_dense_candidate_looks_and_is_called_different():
    rows = [
        lines[0]
        for lines in configurations.dense_lines(configurations.records(configurations.pool_rounds(swept()))).values()
    ]
    looks = {str(style.look(row)) for row in rows}
    names = {style.name(row, rows) for row in rows}
    assert len(looks) == len(names) == len(rows) == 8


def test_of_many_the_best_of_each_way_to_hold_the_data_is_drawn_and_the_rest_is_counted():
    texts = legend("time_density", swept())
    assert dense_of(texts) == ["dense · epoch", "dense · held as CSR · epoch", "dense · held as uint8 · epoch"]
    assert "left out: 5 dense candidates nowhere the best, in the table" in texts
    assert dense_of(legend("memory_density", swept())) == [
        "dense",
        "dense · held as CSR",
        "dense · held as uint8 · epoch",
    ]


def test_a_candidate_that_is_the_best_at_one_density_alone_is_drawn_too():
    at_low = replace(maker.DENSE_IN_CALLS, serial=True, fixed=2e-3, slope=0.1)
    texts = legend("time_density", swept((*MANY, at_low)))
    assert {"dense · epoch", "dense, 1 thread · epoch"} <= set(texts)


def test_of_a_few_all_are_drawn_and_none_is_left_out():
    texts = legend("time_density", swept((maker.DENSE, maker.SERIAL, maker.DENSE_IN_CALLS, maker.SPARSE)))
    assert dense_of(texts) == ["dense", "dense, 1 thread", "dense · epoch"]
    assert not [text for text in texts if text.startswith("left out")]
    assert density.MOST_BASELINES == 3


def test_all_candidates_are_in_the_table_and_among_the_bars():
    table = plots.table("time_density", swept())
    assert table["configuration"].str.startswith("dense").sum() == 8 * len(maker.DENSITIES)
    figure = Figure(figsize=(9, 6))
    plots.draw("time_density", store.frame(maker.sweep(MANY, (0.1,), noise=0.003)), figure)
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert len(dense_of(labels)) == len(set(dense_of(labels))) == 8


def test_a_dense_array_that_did_not_fit_beside_data_held_as_csr_is_named():
    rows = [maker.unfit(row) if (row["format"], row["hold"]) == ("dense", "format") else row for row in
            maker.sweep((maker.DENSE, maker.HELD_AS_CSR, maker.SPARSE))]  # fmt: skip
    figure = Figure(figsize=(9, 6))
    plots.draw("time_density", store.frame(rows), figure)
    assert any("dense needs 82 GB" in text.get_text() for text in figure.axes[0].texts)
    assert "dense · held as CSR · epoch" in [text.get_text() for text in figure.legends[0].get_texts()]
