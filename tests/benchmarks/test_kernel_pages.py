"""What is read from the records of kernels and steps: ratios, targets, shares of the bound, the page."""

import pytest
from matplotlib.figure import Figure

from benchmarks import compare, kernel_suites
from benchmarks.page import write
from tests.support import bench_rows as maker
from tests.support.bench_rows import row


def targets(rows):
    return {one.what: one for one in kernel_suites.list_targets(compare.newest(rows))}


def test_the_fastest_competitor_of_a_library_is_compared_with_the_first_of_ours_or_the_one_asked_for():
    rows = [*maker.suite([16]), row("csr_dense + plan", ratio=4.0)]
    (one,) = compare.newest(rows)
    best, ratio = kernel_suites.best_ratio(one)
    assert (best["candidate"], ratio.value) == ("torch.csr_dense", pytest.approx(2.0))
    assert kernel_suites.best_ratio(one, "scipy")[1].value == pytest.approx(8.0)
    assert kernel_suites.best_ratio(one, "scipy", "csr_dense + plan")[1].value == pytest.approx(2.0)
    assert kernel_suites.best_ratio(one, "numba") is None


def test_targets_of_kernels_are_met_missed_or_not_measured():
    found = targets(maker.suite())
    assert found["CSR @ dense against MKL (PyTorch), geometric mean"].measured == "2 over 3 cases"
    assert found["CSR @ dense against MKL (PyTorch), geometric mean"].met
    assert found["CSR @ dense against MKL (PyTorch), lowest"].measured.startswith("2 (csr_dense uniform")
    assert found["CSR @ dense against plain Numba, geometric mean"].met is None
    assert targets([]) == {}


def test_targets_of_steps_tell_batches_that_repeat_from_new_ones_and_steps_as_users_take_them():
    users = [row("ours, training", seconds=seconds, batches=batches, optimizer="sgd", suite="step", task="step")
             for batches, seconds in (("repeat", 1e-3), ("new", 2e-3))]  # fmt: skip
    small = {"shape": kernel_suites.FEW_ROWS.name, "batches": "new", "suite": "step", "task": "step"}
    found = targets([*maker.steps(), *users, row("ours, module", seconds=50e-6, **small)])
    assert found["whole step, batches that repeat, against PyTorch, geometric mean"].measured == "30 over 4 cases"
    assert found["whole step, a new batch each, against any competitor, lowest"].measured.startswith("12 (")
    dearer = found["whole step, cut from the rows by one that repeats, ours, training, geometric mean"]
    assert (dearer.measured, dearer.met) == ("2 over 1 case", False)
    assert found["whole step of 32 rows of 14 entries, cut from the rows"].met


def test_shares_of_the_bound_are_means_of_large_batches_lowest_first_with_what_binds_most_often():
    rows = [
        row("csr_dense", bound_share=0.9),
        row("csr_dense", width=4, bound_share=0.4),
        row("csr_dense", width=8, bound_share=0.6, bound_by="stream"),
        row("softmax", task="softmax", bound_share=0.3, bound_by="instructions", why_below="it waits"),
        row("softmax", task="softmax", rows=64, bound_share=0.01),
        row("csr_dense + plan", width=64, bound_share=0.01),
    ]
    found = kernel_suites.bound_shares(compare.newest(rows))
    assert [(share.kernel, share.by, share.cases) for share in found] == [
        ("softmax", "instructions", 1),
        ("csr_dense", "gather", 3),
    ]
    assert found[1].mean == pytest.approx((0.9 * 0.4 * 0.6) ** (1 / 3))
    share = targets(rows)["share of the bound measured here, each kernel at R ≥ 4096, geometric mean"]
    assert (share.measured.partition(";")[0], share.met) == ("30 % (softmax)", False)


def test_what_a_call_takes_beyond_its_work_is_of_batches_of_one_width():
    """Products of small batches are measured at many widths; the widest has its own work, and no part in it."""
    small = [
        row("csr_dense", width=width, shape="small batch", rows=rows, seconds=seconds)
        for width, each in ((16, (3e-6, 5e-6)), (256, (12e-6, 16e-6)))
        for rows, seconds in zip((32, 64), each, strict=True)
    ]
    assert targets(small)["call beyond its work, R = 64, N = 16, each kernel"].measured == "1 µs (csr_dense)"


def test_the_page_has_a_chart_tables_and_what_has_no_time(tmp_path):
    suite = kernel_suites.SUITES[0]
    for one in maker.suite():
        suite.table.append(tmp_path / suite.table.file, one)
    text = write(suite, tmp_path).read_text()
    assert "Over 3 configurations ours is 2 times as fast as the fastest competitor" in text
    assert "| csr_dense uniform 4096 16 | 160 µs (152 to 168 µs) | torch.csr_dense | 320 µs" in text
    assert "| blas.dense_dense | memory | Needs 82 GB | 3 |" in text
    assert "| csr_dense | 80 % | gather | 3 |" in text
    assert (tmp_path / "kernels-csr-dense.svg").stat().st_size > 1000


def test_a_chart_has_a_line_a_shape_and_whiskers():
    figure = Figure()
    speeds = {"csr_dense": 1.0, "torch.csr_dense": 0.5}
    rows = [row(name, 16, ratio, shape=shape) for shape in "ab" for name, ratio in speeds.items()]
    assert "behind in 2 of them" in kernel_suites.draw(compare.newest(rows), "csr_dense", figure)
    labels = [line.get_label() for line in figure.axes[0].get_lines()]
    assert labels == ["a, R 4,096", "b, R 4,096", "equal", "mean 0.5 x"]
