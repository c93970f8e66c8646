"""Shares of the bound by kernel, why some are low, and what a call takes beyond its work."""

import pytest

from benchmarks import tables
from benchmarks.analysis import performance_targets
from tests.support.bench_rows import row


def frame(*rows):
    return tables.BENCH.frame(rows)


def test_the_lowest_mean_comes_first_with_what_binds_most_often():
    found = performance_targets.bandwidth_shares(
        frame(
            row("csr_dense", bound_share=0.9),
            row("csr_dense", width=4, bound_share=0.4),
            row("csr_dense", width=8, bound_share=0.6, bound_by="stream"),
            row("softmax", task="softmax", bound_share=0.3, bound_by="instructions"),
            row("softmax", task="softmax", rows=64, bound_share=0.01),
            row("csr_dense + plan", width=64, bound_share=0.01),
        )
    )
    assert [(share.kernel, share.by, share.configurations) for share in found] == [
        ("softmax", "instructions", 1),
        ("csr_dense", "gather", 3),
    ]
    assert found[1].mean == pytest.approx((0.9 * 0.4 * 0.6) ** (1 / 3))


def test_a_kernel_that_is_near_needs_no_reason():
    far = row("merge_rows", bound_share=0.2, why_below="it sorts")
    near = row("add_rows", width=4, bound_share=0.7, why_below="it never is")
    lines = performance_targets.share_lines(frame(far, near, row("sddmm", width=8, bound_share=0.5)))
    assert [(line[0], line[1], line[4]) for line in lines] == [
        ("merge_rows", "20 %", "it sorts"),
        ("sddmm", "50 %", ""),
        ("add_rows", "70 %", ""),
    ]


def test_the_target_names_those_that_are_below():
    (target,) = performance_targets._share(
        frame(row("csr_dense", bound_share=0.9), row("softmax", task="softmax", bound_share=0.3))
    )
    assert target.measured == "lowest: softmax 30 %, csr_dense 90 %; 1 of 2 kernels are below"
    assert target.met is False


def test_what_a_call_takes_beyond_its_work_is_of_batches_of_one_width():
    """Products of small batches are measured at many widths; the widest has its own work, and no part in it."""
    small = [
        row("csr_dense", width=width, shape="small batch", rows=rows, seconds=seconds, key=f"{rows}, {width}")
        for width, each in ((16, (3e-6, 5e-6)), (256, (12e-6, 16e-6)))
        for rows, seconds in zip((32, 64), each, strict=True)
    ]
    (target,) = performance_targets._overhead(frame(*small))
    assert target.measured == "1 µs (csr_dense)"
    assert target.met is True
