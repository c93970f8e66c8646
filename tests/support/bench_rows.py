"""Synthetic records of the suites of kernels and steps: two libraries whose speed against ours is known."""

from collections.abc import Iterable

from benchmarks import tables

SPEEDS = {"csr_dense": 1.0, "scipy.csr_dense": 8.0, "torch.csr_dense": 2.0}
"""Time of each candidate by ours."""


def row(candidate: str, width: int = 16, ratio: float = 1.0, **known) -> dict:
    seconds = known.pop("seconds", 1e-5 * width * ratio)
    settled = {"suite": "kernels", "task": "csr_dense", "shape": "uniform", "rows": 4096, "features": 10_000}
    settled |= {"threads": 2, "machine": "bench-1", "dtype": "float32", "width": width, "device": "cpu"}
    settled |= {"time": "2026-01-02T03:04:05"} | known
    named = ("task", "shape", "rows", "width", "optimizer", "batches")
    settled["case"] = settled["key"] = " ".join(str(settled[name]) for name in named if settled.get(name))
    measured = {
        "samples": [seconds] * 5,
        "seconds": seconds,
        "seconds_low": 0.95 * seconds,
        "seconds_high": 1.05 * seconds,
        "bound_by": "gather",
        "bound_share": 0.8 / ratio,
        "error": 1e-7,
        "error_allowed": 2e-4,
        "source": "5eed",
    }
    side = "project" if "." not in candidate and not candidate.startswith(("torch", "tensorflow")) else "competitor"
    return tables.KERNELS.new_row(**{"status": "ok", "candidate": candidate, "side": side} | measured | settled)


def without(candidate: str, status: str, reason: str, width: int = 16, **known) -> dict:
    lost = {"status": status, "reason": reason, "samples": None, "seconds_low": None, "seconds_high": None}
    return row(candidate, width, **known) | lost | {"seconds": None, "bound_share": None}


def suite(widths: Iterable[int] = (1, 16, 64)) -> list[dict]:
    """Cells with all candidates, a competitor that is not installed and one that does not fit."""
    rows = []
    for width in widths:
        rows += [row(name, width, ratio) for name, ratio in SPEEDS.items()]
        rows.append(without("tensorflow.csr_dense", "unsupported", "Unavailable because it is not installed", width))
        rows.append(without("blas.dense_dense", "memory", "Needs 82 GB", width))
    return rows


def steps() -> list[dict]:
    """Two optimizers, batches that repeat and new ones."""
    speeds = {"ours": 1.0, "torch EmbeddingBag": 30.0, "tensorflow lookup": 15.0, "tensorflow matmul": 12.0}
    known = {"suite": "step", "task": "step", "shape": "power law", "features": 1_000_000}
    return [
        row(name, width, ratio, optimizer=optimizer, batches=batches, **known)
        for width in (1, 16)
        for optimizer in ("sgd", "adam")
        for batches in ("repeat", "new")
        for name, ratio in speeds.items()
    ]
