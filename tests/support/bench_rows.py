"""Synthetic benchmark rows: two libraries whose speed against ours is known, and a machine whose bandwidth is."""

from collections.abc import Iterable

from benchmarks import tables

MIB = 2**20
SPEEDS = {"csr_dense": 1.0, "scipy.csr_dense": 8.0, "torch.csr_dense": 2.0}
"""Time of each candidate by ours."""


def row(candidate: str, width: int = 16, ratio: float = 1.0, **known) -> dict:
    seconds = 1e-5 * width * ratio
    settled = {"suite": "kernels", "task": "csr_dense", "shape": "uniform", "rows": 4096, "features": 10_000}
    settled |= {"key": f"k{width}", "threads": 2, "machine": "bench-1", "dtype": "float32"}
    settled |= {"time": "2026-01-02T03:04:05"}
    z = 200_000
    measured = {
        "samples": [seconds] * 5,
        "seconds": seconds,
        "seconds_low": 0.95 * seconds,
        "seconds_high": 1.05 * seconds,
        "reference": "csr_dense",
        "ratio": ratio,
        "ratio_low": 0.95 * ratio,
        "ratio_high": 1.05 * ratio,
        "nnz": z,
        "flops": 2 * z * width,
        "bytes_compulsory": z * 8 + 4 * 4096 * width,
        "bytes_gather": z * width * 4,
        "bytes_per_second": z * width * 4 / seconds,
        "seconds_bound": 0.8 * 1e-5 * width,
        "bound_by": "gather",
        "bound_share": 0.8 / ratio,
        "error": 1e-7,
        "error_allowed": 2e-4,
        "source": "5eed",
    }
    side = "ours" if "." not in candidate and " " not in candidate else "competitor"
    return tables.BENCH.new_row(
        **{"status": "ok", "candidate": candidate, "side": side, "width": width} | settled | measured | known
    )


def without(candidate: str, status: str, reason: str, width: int = 16, **known) -> dict:
    kept = ("key", "suite", "task", "shape", "rows", "features", "width", "candidate", "side", "threads")
    kept += ("machine", "dtype")
    good = row(candidate, width, **known)
    return tables.BENCH.new_row(status=status, reason=reason, **{name: good[name] for name in kept})


def bandwidths() -> list[dict]:
    base = {"key": "bandwidth", "suite": "kernels", "task": "bandwidth", "side": "ours", "status": "ok", "threads": 2}
    rows = []
    for size, rate in ((MIB, 2e11), (8 * MIB, 1e11), (512 * MIB, 3e10)):
        at = {"bytes_table": size, "machine": "bench-1"}
        rows.append(
            tables.BENCH.new_row(level="read", candidate="read", bytes_row=0, bytes_per_second=rate, **at, **base)
        )
        gather = {"level": "gather", "candidate": "gather", "bytes_row": 256, "bytes_per_second": rate / 2}
        rows.append(tables.BENCH.new_row(**gather, **at, **base))
    return rows


def suite(widths: Iterable[int] = (1, 16, 64)) -> list[dict]:
    """Cells with all candidates, a competitor that is not installed and one that does not fit."""
    rows = bandwidths()
    for width in widths:
        rows += [row(name, width, ratio) for name, ratio in SPEEDS.items()]
        rows.append(without("tensorflow.csr_dense", "unsupported", "Unavailable because it is not installed", width))
        rows.append(without("blas.dense_dense", "memory", "Needs 82 GB", width))
    return rows


def steps() -> list[dict]:
    """Two optimizers, batches that repeat and new ones."""
    speeds = {"ours": 1.0, "torch EmbeddingBag": 30.0, "tensorflow lookup": 15.0, "tensorflow matmul": 12.0}
    known = {"suite": "step", "task": "step", "shape": "power law", "features": 1_000_000, "reference": "ours"}
    return [
        row(name, width, ratio, key=f"{width}{optimizer}{batches}", optimizer=optimizer, batches=batches, **known)
        for width in (1, 16)
        for optimizer in ("sgd", "adam")
        for batches in ("repeat", "new")
        for name, ratio in speeds.items()
    ]
