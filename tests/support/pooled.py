"""Cells as analysis pools them, made at once from the seconds of their rounds: quick enough for simulations."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.analysis import configurations


def pooled(seconds: Sequence[float], density: float = 0.1, format: str = "csr", **known: Any) -> dict[str, Any]:
    """An ok configuration of one run with these seconds by round; `known` overrides any column."""
    by_place = {("r1", number): float(value) for number, value in enumerate(seconds)}
    columns = {"format": format, "density": density, "density_measured": density, "status": "ok", "run": "r1"}
    columns |= {"update": "standard", "rounds": len(by_place), "rounds_disturbed": 0, "rounds_failed": 0}
    columns |= {"seconds_step": float(np.exp(np.mean(np.log(seconds)))), "round_values": {"seconds_step": by_place}}
    return dict.fromkeys((*configurations.LINE, *configurations.GROUP)) | columns | known


def neighbours(ratio: float, rng: np.random.Generator, *, rounds: int, sd: float, spell: float = 0.3) -> np.ndarray:
    """Seconds of sparse and of dense, [2, rounds]: dense takes `ratio` times as long.

    `sd` is that of the logarithm of a round's ratio, `spell` what both have in common.
    """
    own = rng.normal(0, sd / np.sqrt(2), (2, rounds))
    return np.array([[1.0], [ratio]]) * np.exp(rng.normal(0, spell, rounds) + own)
