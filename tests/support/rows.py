"""Synthetic result rows that obey a known law, for tests of what reads rows.

A sparse step takes `fixed + slope * density` seconds and `bytes_fixed + bytes_slope * density` bytes, a dense step
always the same; so the true crossing is known. Rows come in rounds of one run, the candidates of a comparison next to
each other. Noise is lognormal, drawn from the seed: `noise` is that of a trial, `shared` what the candidates of a
comparison have in common in a round; samples of a trial scatter by a third of `noise`.

`workbench.store` is imported late: it loads pandas, and processes of trials import this module.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from workbench.measure.rounds import INTERIM_ANALYSES, counterbalanced_order, trial_statistic

DENSITIES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
PHASES = {"slice": 0.05, "convert": 0.02, "plan": 0.08, "transfer": 0.0, "forward": 0.35, "loss": 0.05}
PHASES |= {"gradient": 0.3, "update": 0.15}


@dataclass(frozen=True)
class Law:
    """What a configuration costs: seconds and bytes as a function of the density."""

    format: str = "csr"
    engine: str = "ours"
    gradient: str = "row_sparse"
    update: str = "standard"
    fixed: float = 1e-4
    slope: float = 0.1
    bytes_fixed: float = 10e6
    bytes_slope: float = 400e6
    loss_last: float = 0.35
    quality: float = 0.91
    serial: bool = False
    trainers: int = 1
    execution: str = "step"
    storage: str = "same"

    def seconds(self, density: float) -> float:
        return self.fixed + self.slope * density

    def bytes(self, density: float) -> float:
        return self.bytes_fixed + self.bytes_slope * density


DENSE = Law("dense", "dense", "dense", "standard", fixed=8e-3, slope=0.0, bytes_fixed=100e6, bytes_slope=0.0)
SERIAL = replace(DENSE, serial=True, fixed=11e-3)
SPARSE = Law()
IN_CALLS = replace(SPARSE, update="lazy", execution="epoch", fixed=4e-5)
DENSE_IN_CALLS = replace(DENSE, execution="epoch", fixed=4e-3)
HELD_AS_CSR = replace(DENSE_IN_CALLS, storage="csr", fixed=4.1e-3, slope=1e-3, bytes_fixed=14e6, bytes_slope=400e6)
SERIAL_HELD = replace(HELD_AS_CSR, serial=True, fixed=7e-3)
BOTH_AT_THEIR_BEST = (DENSE, SERIAL, DENSE_IN_CALLS, HELD_AS_CSR, SERIAL_HELD, SPARSE, IN_CALLS)
"""Both sides a step at a time and in one call, dense with its data held in two ways."""
LINE = ("format", "gradient", "update", "engine", "serial", "trainers", "execution", "storage")
"""The settings that a law has."""


def crossing(sparse: Law = SPARSE, dense: Law = DENSE) -> float:
    """The density from which dense takes less time."""
    return (dense.fixed - sparse.fixed) / sparse.slope


SETTINGS = {
    "dataset": "synthetic",
    "rows_total": 20_000,
    "features": 10_000,
    "width": 16,
    "batch_rows": 256,
    "model": "logistic",
    "optimizer": "sgd",
    "dtype": "float32",
    "index_dtype": "int32",
    "threads": 2,
    "shuffle": False,
    "ahead": False,
    "epochs": 1,
    "learning_rate": 0.1,
    "seed": 0,
    "device": "cpu",
    "intercept": False,
    "round": 0,
}
"""What all configurations have in common."""


def measured(law: Law, density: float, drawn: np.ndarray, size: float) -> dict:
    """What a trial of that law would have measured: samples `drawn`, and a peak of `size` bytes."""
    samples, seconds = len(drawn), trial_statistic(drawn)
    return {
        "density_measured": density * 1.002,
        "nnz_batch": 256 * 10_000 * density,
        "touched": 10_000 * (1 - (1 - density) ** 256),
        "row_length_cv": 0.4,
        "busy_others": 0.01,
        "tries": 1,
        "steps_timed": 10 * samples,
        "steps_epoch": 78,
        "samples": drawn.tolist(),
        "seconds_step": seconds,
        "seconds_step_low": float(drawn.min()),
        "seconds_step_high": float(np.median(drawn)),
        "seconds_epoch": 78 * seconds,
        "seconds_compile": 1.2,
        "seconds_first_step": 3 * seconds,
        "bytes_predicted": int(0.8 * size),
        "bytes_held": int(0.85 * size),
        "bytes_peak": int(size),
        "bytes_limit": 4_000_000_000,
        "curve": [[i * seconds, law.loss_last + 0.35 * float(np.exp(-i / 10)), i] for i in range(0, 50, 2)],
        "loss_first": law.loss_last + 0.35,
        "loss_last": law.loss_last,
        "quality": law.quality,
        "quality_name": "accuracy",
        "error": 2e-7,
        "error_allowed": 1e-5,
        "densified": [],
        "machine": "bench-1",
        "versions": {"numpy": "2.4.6", "scipy": "1.17.1"},
        "blas": "OpenBLAS 0.3.30, 2 threads",
        "source": "5eed",
        "seconds_overhead": 0.8,
    }


def row(
    law: Law,
    density: float,
    rng: np.random.Generator,
    noise: float = 0.05,
    samples: int = 20,
    spell: float = 1.0,
    **known: Any,
) -> dict:
    """One ok row; `spell` is what all candidates take longer in its round, `known` overrides any column."""
    from workbench import store

    slower = spell * float(np.exp(noise * rng.standard_normal()))
    drawn = law.seconds(density) * slower * np.exp(noise / 3 * rng.standard_normal(samples))
    size = law.bytes(density) * (1 + 0.02 * noise * float(rng.standard_normal()))
    settings = {"density": density} | {name: getattr(law, name) for name in LINE}
    typical = trial_statistic(drawn)
    phases = {f"seconds_{name}": share * typical for name, share in PHASES.items()}
    identity = {"run": "r1", "experiment": "known-law", "time": "2026-01-02T03:04:05Z", "status": "ok"}
    columns = identity | SETTINGS | settings | measured(law, density, drawn, size) | phases | known
    return store.new_row(**{"key": key_of(columns)} | columns)


def key_of(columns: dict) -> str:
    """What all rounds of a configuration have in common: its settings but for the round, the code, the versions."""
    from workbench import store

    names = [name for name in store.SETTINGS if name != "round"]
    return "/".join(str(columns.get(name)) for name in (*names, "source", "versions"))


def failed(good: dict, status: str, reason: str, **known: Any) -> dict:
    """The row that the same configuration writes when it fails: settings kept, nothing measured."""
    from workbench import store

    kept = {name: good[name] for name in (*store.SETTINGS, "key", "run", "experiment", "time", "machine", "source")}
    return store.new_row(**kept | {"status": status, "reason": reason} | known)


def disturbed(good: dict, share: float = 0.5) -> dict:
    """The record of the same configuration if other programs took that share of the cores in each of three tries."""
    reason = f"other programs took {100 * share:.0f} % of the cores in each of 3 tries"
    slower = {"seconds_step": 3 * good["seconds_step"], "samples": [3 * sample for sample in good["samples"]]}
    return good | slower | {"status": "disturbed", "reason": reason, "busy_others": share, "tries": 3}


def cut_off(good: dict) -> dict:
    """The row that the same configuration writes if its time was out after some samples, which are kept."""
    return good | {
        "status": "timeout",
        "reason": "Stopped after 9 s (limits.seconds_cell), with 3 samples of 30 steps.",
    }


def unfit(good: dict, bytes_needed: int = 82_000_000_000, bytes_limit: int = 16_000_000_000) -> dict:
    """The row of a configuration that did not fit in memory."""
    reason = f"needs {bytes_needed / 1e9:.0f} GB, the limit is {bytes_limit / 1e9:.0f} GB"
    return failed(good, "memory", reason, bytes_needed=bytes_needed, bytes_limit=bytes_limit)


def sweep(
    laws: Sequence[Law] = (DENSE, SPARSE),
    densities: Sequence[float] = DENSITIES,
    *,
    seed: int = 0,
    rounds: int = INTERIM_ANALYSES[0],
    noise: float = 0.05,
    shared: float | None = None,
    samples: int = 20,
    **known: Any,
) -> list[dict]:
    """Rows of every law at every density, round by round, in the order in which a runner measures them.

    `shared` is twice `noise` unless given.
    """
    rng = np.random.default_rng(seed)
    shared = 2 * noise if shared is None else shared
    rows = []
    for round in range(rounds):
        for density in densities:
            spell = float(np.exp(shared * rng.standard_normal()))
            rows += [
                row(law, density, rng, noise, samples, spell, round=round, **known)
                for law in counterbalanced_order(laws, round)
            ]
    return rows


def rich(seed: int = 0) -> list[dict]:
    """A realistic sweep: six configurations and dense on one thread, two widths, failures of every kind."""
    laws = (
        DENSE,
        SPARSE,
        replace(SPARSE, update="lazy", fixed=6e-5, slope=0.08, loss_last=0.37, quality=0.895),
        replace(SPARSE, engine="vendor", gradient="dense", fixed=9e-4, slope=0.25),
        replace(SPARSE, format="csc", fixed=2e-4, slope=0.14),
        replace(SPARSE, format="coo", engine="vendor", gradient="dense", fixed=1.4e-3, slope=0.5, bytes_slope=900e6),
        SERIAL,
    )
    rows = sweep(laws, seed=seed)
    wide = [replace(law, fixed=4 * law.fixed, slope=3 * law.slope, bytes_fixed=2 * law.bytes_fixed) for law in laws[:3]]
    rows += sweep(wide, seed=seed + 1, width=64)
    return [_spoiled(row) for row in rows]


def _spoiled(row: dict) -> dict:
    """A few configurations of the narrow sweep fail, each for another reason; one was disturbed throughout."""
    if row["width"] != 16 or row["format"] not in ("coo", "csc"):
        return row
    if row["format"] == "coo" and row["density"] == 0.3:
        return unfit(row, 5_200_000_000, 4_000_000_000)
    if row["format"] == "coo" and row["density"] == 0.1:
        return failed(row, "timeout", "no result after 60 s")
    if row["format"] == "csc" and row["density"] == 0.001:
        return failed(row, "unsupported", "csc has no row_sparse gradient with sgd")
    if row["format"] == "csc" and row["density"] == 0.03:
        return disturbed(row)
    if row["format"] == "coo" and row["density"] == 0.001:
        return row | {"densified": [{"op": "dot", "shape": [256, 10_000], "bytes": 10_240_000}]}
    return row
