"""Goals of the benchmark on a CUDA device, and what was reached; the competitor at its best, in the same run."""

from collections.abc import Callable, Iterable

import pandas as pd

from workbench.analysis import formatting
from workbench.analysis.bench import Goal, Ratio, geometric_mean, group_by_configuration, ratios, target_at_least

NARROW = 32
FEATURES_LARGE = 1_000_000
ROWS_LARGE = 16_384
SHARE = 0.6

FUSED = (4096, 1_000_000, 64)
"""Rows, features and width of the cells of the goal for a fused update."""


def list_targets(frame: pd.DataFrame) -> list[Goal]:
    """Return the table of goals for benchmark rows of cuda, in a fixed order."""
    return [*_product(frame), *_fused(frame), *_step(frame), *_share(frame)]


def _product(frame: pd.DataFrame) -> list[Goal]:
    """Return the targets of the product CSR @ dense against cuSPARSE and CuPy."""
    warm = {name: _warm(frame, name) for name in ("cusparse.", "cupyx.")}
    narrow = [ratio for ratio in warm["cusparse."] if ratio.row["width"] <= NARROW]
    large = [ratio for ratio in warm["cupyx."] if ratio.row["features"] >= FEATURES_LARGE]
    best = "cuSPARSE at its best, warm, geometric mean"
    return [
        target_at_least(f"CSR @ dense against {best}", warm["cusparse."], 1.3),
        target_at_least(f"CSR @ dense at N ≤ {NARROW} against {best}", narrow, 2.0),
        target_at_least("CSR @ dense at D ≥ 1e6 against cupyx, warm, geometric mean", large, 10.0),
    ]


def _warm(frame: pd.DataFrame, rival: str, task: str = "csr_dense") -> list[Ratio]:
    """Return the ratios against a competitor with warm caches."""
    return [ratio for ratio in ratios(frame, task, rival) if ratio.row["cache"] == "warm"]


def _fused(frame: pd.DataFrame) -> list[Goal]:
    """Return the target of gradient and lazy AdaGrad in one kernel against PyTorch."""
    against_torch = [
        ratio
        for ratio in _warm(frame, "torch_cuda.", "adagrad_fused")
        if (ratio.row["rows"], ratio.row["features"], ratio.row["width"]) == FUSED
    ]
    what = "gradient + lazy AdaGrad, R = {:,}, D = {:,}, N = {}".format(*FUSED)
    return [target_at_least(f"{what}, against PyTorch's sparse gradient + Adagrad, warm", against_torch, 6.0)]


def _step(frame: pd.DataFrame) -> list[Goal]:
    """Return the targets of whole training steps against PyTorch."""
    repeated = [ratio for ratio in ratios(frame, "step", "torch_cuda") if ratio.row["batches"] == "repeat"]
    of_rows: Callable[[int], Iterable[Ratio]] = lambda rows: [each for each in repeated if each.row["rows"] == rows]  # noqa: E731
    what = "whole step, batches that repeat, against PyTorch"
    least_by_rows = ((256, 10.0), (65_536, 3.0))
    return [
        target_at_least(f"{what}, R = {rows:,}, geometric mean", of_rows(rows), least) for rows, least in least_by_rows
    ]


def _share(frame: pd.DataFrame) -> list[Goal]:
    """Return the goals of the share of the bound that the device's own copy rate gives, caches cold."""
    shares: dict[str, list[float]] = {name: [] for name in ("csr_dense", "sgd_fused", "adam_fused")}
    for row in (row for rows in group_by_configuration(frame) for row in rows):
        is_large = row["rows"] >= ROWS_LARGE and row["cache"] == "cold"
        if row["contender"] in shares and is_large and row["bound_share"]:
            shares[row["contender"]].append(row["bound_share"])
    return [_share_of(name, values) for name, values in shares.items()]


def _share_of(name: str, values: list[float]) -> Goal:
    """Return the target on the share of a copy's bandwidth that a kernel reaches."""
    what = f"{name}: share of the bound of a copy, R ≥ {ROWS_LARGE:,}, cold, geometric mean"
    mean = geometric_mean(values)
    if mean is None:
        return Goal(what, f"≥ {formatting.format_density(SHARE)}", "not measured", None)
    over = formatting.format_count(len(values), "cell")
    return Goal(
        what, f"≥ {formatting.format_density(SHARE)}", f"{formatting.format_density(mean)} over {over}", mean >= SHARE
    )
