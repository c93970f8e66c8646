"""Targets of the kernels, what was measured, and by how much it was missed."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

import pandas as pd

from benchmarks.analysis.bench import (
    SMALL,
    PerformanceTarget,
    Ratio,
    describe_configuration,
    geometric_mean,
    group_by_configuration,
    newest_records,
    ratios,
    records,
    target_at_least,
)
from workbench.analysis.formatting import format_count, format_density, format_number, format_seconds

# Targets of the benchmark on a CUDA device, and what was reached; the competitor at its best, in the same run.


NARROW = 32
CUDA_FEATURES_LARGE = 1_000_000
CUDA_ROWS_LARGE = 16_384
SHARE = 0.6

FUSED = (4096, 1_000_000, 64)
"""Rows, features and width of the configurations of the target for a fused update."""


def list_cuda_targets(frame: pd.DataFrame) -> list[PerformanceTarget]:
    """Return the performance targets for benchmark records of CUDA, in a fixed order; unmeasured ones included.

    `frame` holds records of the benchmark suites.
    """
    return [*_cuda_product(frame), *_fused(frame), *_cuda_step(frame), *_cuda_share_of_bound(frame)]


def _cuda_product(frame: pd.DataFrame) -> list[PerformanceTarget]:
    """Return the targets of the product CSR @ dense against cuSPARSE (all, and N <= 32) and CuPy (D >= 1e6).

    `frame` holds the newest records of the benchmark suites.
    """
    warm = {name: _warm(frame, name) for name in ("cusparse.", "cupyx.")}
    narrow = [ratio for ratio in warm["cusparse."] if ratio.row["width"] <= NARROW]
    large = [ratio for ratio in warm["cupyx."] if ratio.row["features"] >= CUDA_FEATURES_LARGE]
    best = "cuSPARSE at its best, warm, geometric mean"
    return [
        target_at_least(f"CSR @ dense against {best}", warm["cusparse."], 1.3),
        target_at_least(f"CSR @ dense at N ≤ {NARROW} against {best}", narrow, 2.0),
        target_at_least("CSR @ dense at D ≥ 1e6 against cupyx, warm, geometric mean", large, 10.0),
    ]


def _warm(frame: pd.DataFrame, competitor: str, task: str = "csr_dense") -> list[Ratio]:
    """Return the competitor / ours ratios of `task` with warm caches; `competitor` begins the competitor's name.

    `frame` holds the newest records of the benchmark suites.
    """
    return [ratio for ratio in ratios(frame, task, competitor) if ratio.row["cache"] == "warm"]


def _fused(frame: pd.DataFrame) -> list[PerformanceTarget]:
    """Return the target of gradient and lazy AdaGrad in one kernel against PyTorch, R = 4096, D = 1e6, N = 64.

    `frame` holds the newest records of the benchmark suites.
    """
    against_torch = [
        ratio
        for ratio in _warm(frame, "torch_cuda.", "adagrad_fused")
        if (ratio.row["rows"], ratio.row["features"], ratio.row["width"]) == FUSED
    ]
    what = "gradient + lazy AdaGrad, R = {:,}, D = {:,}, N = {}".format(*FUSED)
    return [target_at_least(f"{what}, against PyTorch's sparse gradient + Adagrad, warm", against_torch, 6.0)]


def _cuda_step(frame: pd.DataFrame) -> list[PerformanceTarget]:
    """Return the targets of whole training steps against PyTorch, for 256 and 65,536 rows, batches that repeat.

    `frame` holds the newest records of the benchmark suites.
    """
    repeated = [ratio for ratio in ratios(frame, "step", "torch_cuda") if ratio.row["batches"] == "repeat"]
    of_rows: Callable[[int], Iterable[Ratio]] = lambda rows: [each for each in repeated if each.row["rows"] == rows]  # noqa: E731
    what = "whole step, batches that repeat, against PyTorch"
    least_by_rows = ((256, 10.0), (65_536, 3.0))
    return [
        target_at_least(f"{what}, R = {rows:,}, geometric mean", of_rows(rows), least) for rows, least in least_by_rows
    ]


def _cuda_share_of_bound(frame: pd.DataFrame) -> list[PerformanceTarget]:
    """Return the targets on the fraction of the device's copy bandwidth, per kernel, large batches, cold caches.

    `frame` holds the newest records of the benchmark suites.
    """
    shares: dict[str, list[float]] = {name: [] for name in ("csr_dense", "sgd_fused", "adam_fused")}
    for row in (row for rows in group_by_configuration(frame) for row in rows):
        is_large = row["rows"] >= CUDA_ROWS_LARGE and row["cache"] == "cold"
        if row["candidate"] in shares and is_large and row["bound_share"]:
            shares[row["candidate"]].append(row["bound_share"])
    return [_share_of(name, values) for name, values in shares.items()]


def _share_of(name: str, values: list[float]) -> PerformanceTarget:
    """Return the target that the geometric mean of a kernel's bandwidth fractions is at least 0.6."""
    what = f"{name}: share of the bound of a copy, R ≥ {CUDA_ROWS_LARGE:,}, cold, geometric mean"
    mean = geometric_mean(values)
    if mean is None:
        return PerformanceTarget(what, f"≥ {format_density(SHARE)}", "not measured", None)
    over = format_count(len(values), "configuration")
    return PerformanceTarget(what, f"≥ {format_density(SHARE)}", f"{format_density(mean)} over {over}", mean >= SHARE)


# Share of the machine's bound that each kernel reaches, and why one that stays far from it does.


ROWS_LARGE = 4096
"""Rows of a batch from which on a call's own cost is small compared with its work."""

WANTED = 0.6
"""The share that each kernel is to reach, or the page says why not."""


class Share(NamedTuple):
    """The mean share of the bound that a kernel reaches in large batches, what binds most often, in how many
    configurations, and why calls stay below, as its rows say."""

    kernel: str
    mean: float
    by: str
    configurations: int
    why: str


def bandwidth_shares(frame: pd.DataFrame) -> list[Share]:
    """Return each kernel's mean fraction of the machine's bound for batches of 4096 rows or more, ascending.

    Candidates made of two kernels ("+" in the name) and records without a bound are left out. `frame` holds records of
    the benchmark suites.
    """
    found: dict[str, list[tuple[float, str, str]]] = {}
    for rows in group_by_configuration(frame):
        for row in rows:
            alone = row["side"] == "ours" and "+" not in row["candidate"]
            if alone and row["bound_share"] and row["rows"] >= ROWS_LARGE:
                measured = row["bound_share"], row["bound_by"], row["why_below"] or ""
                found.setdefault(row["candidate"], []).append(measured)
    named = []
    for name, each in found.items():
        (by, _), *_ = Counter(by for _, by, _ in each).most_common(1)
        mean = geometric_mean(share for share, _, _ in each) or 0.0
        named.append(Share(name, mean, by, len(each), each[-1][2]))
    return sorted(named, key=lambda share: share.mean)


def share_lines(frame: pd.DataFrame) -> list[tuple[str, str, str, str, str]]:
    """Return (kernel, "85 %", what binds, configurations, why it is below 60 % or "") per kernel, ascending.

    `frame` holds records of the benchmark suites.
    """
    return [
        (each.kernel, f"{100 * each.mean:.0f} %", each.by, str(each.configurations), each.why * (each.mean < WANTED))
        for each in bandwidth_shares(frame)
    ]


FEW_ROWS = "32 rows of 14"
USERS = ("ours, training", "ours, module")
"""The shape and the candidates of steps as users take them."""
FEATURES_LARGE = 1_000_000
ONCE = ("import kernels", "start of Numba")


def list_targets(frame: pd.DataFrame) -> list[PerformanceTarget]:
    """Return the targets of the suites that have records, in a fixed order: of the CPU, then of CUDA.

    Without any record the targets of all CPU suites are returned, as not measured. `frame` holds records of the
    benchmark suites.
    """
    frame = newest_records(frame)
    is_there = frame["device"] == "cuda"
    there, here = frame[is_there], frame[~is_there]
    suites = set(here["suite"]) if len(frame) else set(OF_SUITE)
    lines = [target for suite, parts in OF_SUITE.items() if suite in suites for part in parts for target in part(here)]
    return [*lines, *(list_cuda_targets(there) if len(there) else [])]


def _lowest_ratio(what: str, measured: Iterable[Ratio], wanted: float) -> PerformanceTarget:
    """Return the target named `what` that each ratio is at least `wanted`, with the lowest and its configuration."""
    measured = sorted(measured, key=lambda ratio: ratio.value)
    if not measured:
        return PerformanceTarget(what, f"≥ {wanted:g} x", "not measured", None)
    behind = [ratio for ratio in measured if ratio.value < wanted]
    where = (
        f"{format_number(measured[0].value)} x at {describe_configuration(measured[0].row)} ({measured[0].competitor})"
    )
    more = f"; {len(behind)} of {len(measured)} configurations are below" if behind else ""
    return PerformanceTarget(what, f"≥ {wanted:g} x", where + more, not behind)


def _product(frame: pd.DataFrame) -> list[PerformanceTarget]:
    """Return the targets of the product CSR @ dense against MKL (PyTorch) and SciPy.

    `frame` holds the newest records of the benchmark suites.
    """
    by = {
        competitor: [r for r in ratios(frame, "csr_dense", competitor) if r.row["shape"] != SMALL]
        for competitor in ("torch", "scipy")
    }
    return [
        target_at_least("CSR @ dense against MKL (PyTorch), geometric mean", by["torch"], 2.0),
        _lowest_ratio("CSR @ dense against MKL (PyTorch), lowest", by["torch"], 0.95),
        target_at_least("CSR @ dense against SciPy, geometric mean", by["scipy"], 6.0),
    ]


def _gradient(frame: pd.DataFrame) -> list[PerformanceTarget]:
    """Return the targets of the weight gradient against SciPy at D >= 1e6, with the plan cached and built.

    `frame` holds the newest records of the benchmark suites.
    """
    lines = []
    for ours, when, wanted in (("csr_t_dense", "plan cached", 10.0), ("csr_t_dense + plan", "plan built", 4.0)):
        large = [r for r in ratios(frame, "csr_t_dense", "scipy", ours) if r.row["features"] >= FEATURES_LARGE]
        lines.append(target_at_least(f"gradient as row_sparse against SciPy's A.T @ G, D ≥ 1e6, {when}", large, wanted))
    return lines


def _vectors(frame: pd.DataFrame) -> list[PerformanceTarget]:
    """Return the targets for this project's vector code against the same loops in plain Numba.

    `frame` holds the newest records of the benchmark suites.
    """
    tasks = {"csr_dense": "CSR @ dense", "adagrad_fused": "gradient and AdaGrad in one pass"}
    return [
        target_at_least(f"{label} against plain Numba, geometric mean", ratios(frame, task, "numba"), 1.3)
        for task, label in tasks.items()
    ]


def _step(frame: pd.DataFrame) -> list[PerformanceTarget]:
    """Return the targets of whole training steps against TensorFlow and PyTorch, and on the user's batches.

    `frame` holds the newest records of the benchmark suites.
    """
    lines = _step_of_users(frame)
    frame = frame[frame["shape"] != FEW_ROWS]
    for batches, label, least in (("repeat", "batches that repeat", (10, 20)), ("new", "a new batch each", (5, 10))):
        for competitor, name, wanted in (("tensorflow", "TensorFlow", least[0]), ("torch", "PyTorch", least[1])):
            mine = [r for r in ratios(frame, "step", competitor) if r.row["batches"] == batches]
            lines.append(target_at_least(f"whole step, {label}, against {name}, geometric mean", mine, wanted))
    new = [r for r in ratios(frame, "step") if r.row["batches"] == "new"]
    return [*lines, _lowest_ratio("whole step, a new batch each, against any competitor, lowest", new, 1.0)]


def _step_of_users(frame: pd.DataFrame) -> list[PerformanceTarget]:
    """Return the targets on steps whose batches are cut from a data set: the time of small ones, and new / repeated.

    `frame` holds the newest records of the benchmark suites.
    """
    of_users = [
        row
        for rows in group_by_configuration(frame, "step")
        for row in rows
        if row["candidate"] in USERS and row["seconds"]
    ]
    few = {row["candidate"]: row["seconds"] for row in of_users if (row["shape"], row["batches"]) == (FEW_ROWS, "new")}
    times: dict[tuple, dict[str, float]] = {}
    for row in of_users:
        if row["shape"] != FEW_ROWS:
            configuration = *(row[name] for name in ("shape", "width", "optimizer")), row["candidate"]
            times.setdefault(configuration, {})[row["batches"]] = row["seconds"]
    lines = _largest_time("whole step of 32 rows of 14 entries, cut from the rows", few, 60e-6)
    for user in USERS:
        dearer = [
            each["new"] / each["repeat"]
            for configuration, each in times.items()
            if configuration[-1] == user and len(each) == 2
        ]
        lines.append(_dearer(f"whole step, cut from the rows by one that repeats, {user}, geometric mean", dearer, 1.6))
    return lines


def _dearer(what: str, times: list[float], most: float) -> PerformanceTarget:
    """Return the target named `what` that the geometric mean of time ratios is at most `most`."""
    mean, wanted = geometric_mean(times), f"≤ {most:g} x"
    if mean is None:
        return PerformanceTarget(what, wanted, "not measured", None)
    highest = (
        f"{format_number(mean)} x over {format_count(len(times), 'configuration')}, at most "
        f"{format_number(max(times))} x"
    )
    return PerformanceTarget(what, wanted, highest, mean <= most)


def _share(frame: pd.DataFrame) -> list[PerformanceTarget]:
    """Return one target: that each kernel's mean fraction of the measured bound is at least 0.6.

    `frame` holds the newest records of the benchmark suites.
    """
    found, wanted = bandwidth_shares(frame), f"≥ {100 * WANTED:.0f} %"
    what = "share of the bound measured here, each kernel at R ≥ 4096, geometric mean"
    if not found:
        return [PerformanceTarget(what, wanted, "not measured", None)]
    below = [share.kernel for share in found if share.mean < WANTED]
    listed = ", ".join(f"{share.kernel} {100 * share.mean:.0f} %" for share in found[:4])
    more = f"; {len(below)} of {len(found)} kernels are below" if below else ""
    return [PerformanceTarget(what, wanted, f"lowest: {listed}{more}", not below)]


def _overhead(frame: pd.DataFrame) -> list[PerformanceTarget]:
    """Return one target: the time of a call that does not grow with the batch, at most 3 µs for each kernel.

    It is twice the time of half the batch less the time of the whole, for the small-batch shape of width 16. `frame`
    holds the newest records of the benchmark suites.
    """
    times: dict[str, dict[int, float]] = {}
    for rows in group_by_configuration(frame):
        for row in rows:
            is_small = row["shape"] == SMALL and row["width"] == WIDTH_SMALL
            if is_small and row["status"] == "ok" and _is_kernel_of_batch(row["candidate"]):
                times.setdefault(row["candidate"], {})[row["rows"]] = row["seconds"]
    beyond = {name: 2 * each[min(each)] - each[max(each)] for name, each in times.items() if len(each) == 2}
    return _largest_time(f"call beyond its work, R = 64, N = {WIDTH_SMALL}, each kernel", beyond, 3e-6)


WIDTH_SMALL = 16
"""Width of the small batches whose calls are compared: products are measured at others, too."""

OF_BATCH = ("csr_dense", "csr_t_dense", "csr_dense_ones", "csr_t_dense_ones", "sddmm", "squared", "logistic", "softmax")


def _is_kernel_of_batch(name: str) -> bool:
    """Return whether a candidate is a kernel of this project whose work grows with the batch alone."""
    return name in OF_BATCH or (name.endswith(("_fused", "_lazy")) and not set("+.") & set(name))


def _start(frame: pd.DataFrame) -> list[PerformanceTarget]:
    """Return the targets on import time (0.4 s) and on the first call of each kernel in a new process (0.05 s).

    `frame` holds the newest records of the benchmark suites.
    """
    rows = [row for row in records(frame) if row["task"] == "start" and row["status"] == "ok"]
    once = {row["candidate"]: row["seconds"] for row in rows if row["candidate"] in ONCE}
    first = {row["candidate"]: row["seconds"] for row in rows if row["candidate"] not in ONCE}
    start = once.get("start of Numba")
    start_text = f" (Numba's own start, once a process, {format_seconds(start)} more)" if start else ""
    return [
        *_largest_time(f"first call in a new process, warm cache, each kernel{start_text}", first, 0.05),
        *_largest_time(
            "import of kernels, with all names looked up", {k: v for k, v in once.items() if "import" in k}, 0.4
        ),
    ]


def _largest_time(what: str, seconds: dict[str, float], wanted: float) -> list[PerformanceTarget]:
    """Return the target that the largest of `seconds` (by name) is at most `wanted` (s), with how many exceed it."""
    tell = format_seconds
    if not seconds:
        return [PerformanceTarget(what, f"≤ {tell(wanted)}", "not measured", None)]
    worst = max(seconds, key=lambda name: seconds[name])
    above = sum(value > wanted for value in seconds.values())
    more = f"; {above} of {len(seconds)} are above" if above else ""
    return [
        PerformanceTarget(what, f"≤ {tell(wanted)}", f"{tell(max(seconds[worst], 0.0))} ({worst}){more}", not above)
    ]


OF_SUITE = {"kernels": (_product, _gradient, _vectors, _share, _overhead, _start), "step": (_step,)}
"""Functions that judge the targets of a suite; others have no targets."""
