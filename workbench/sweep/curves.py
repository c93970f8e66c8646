"""Curves that a trial keeps of a training: its losses step by step, and after which epochs its quality is told."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from workbench.train import StepEvent

CURVE_POINTS = 100
"""More than a chart shows; a curve is most of a row."""
CURVE_DIGITS, SAMPLE_DIGITS = 5, 6
QUALITY_POINTS = 12


def epochs_judged(epochs: int) -> set[int]:
    """After which of so many epochs the quality is told, beside the clock: at most `QUALITY_POINTS`, the last always.

    >>> sorted(epochs_judged(3)), len(epochs_judged(100)), max(epochs_judged(100))
    ([1, 2, 3], 12, 100)
    """
    return {int(epoch) for epoch in np.linspace(1, epochs, min(epochs, QUALITY_POINTS)).round()}


class Curve:
    """Loss against training seconds, of all steps; thinned when it is written."""

    def __init__(self) -> None:
        self.events: list[StepEvent] = []

    def add(self, event: StepEvent) -> StepEvent:
        """Keep the event, and give it back."""
        self.events.append(event)
        return event

    def seconds_prepare(self) -> float:
        """Mean seconds that a batch took to slice, convert and plan in the steps that did so."""
        seconds = [event.seconds_prepare for event in self.events if event.seconds_prepare]
        return float(np.mean(seconds)) if seconds else 0.0

    def columns(self) -> dict[str, Any]:
        """Columns of the row."""
        counts = [event.steps for event in self.events]
        seconds = np.repeat([event.seconds_step / event.steps for event in self.events], counts)
        losses = np.concatenate([[event.loss] if event.losses is None else event.losses for event in self.events])
        return curve_columns(seconds, losses, self.events[0].step - counts[0] + 1)


def curve_columns(seconds: np.ndarray, losses: np.ndarray, first: int) -> dict[str, Any]:
    """Columns of a row from seconds and losses of its steps, the first of number `first`; both float64 [steps].

    At most `CURVE_POINTS` points, the first and the last always among them.
    """
    picked = np.unique(np.linspace(0, losses.size - 1, CURVE_POINTS).round().astype(int))
    steps = (first + picked).tolist()
    passed, told = (shortened(values[picked], CURVE_DIGITS) for values in (np.cumsum(seconds), losses))
    points = [list(point) for point in zip(passed, told, steps, strict=True)]
    return {"curve": points, "loss_first": float(losses[0]), "loss_last": float(losses[-1])}


def shortened(values: Iterable[float], digits: int) -> list[float]:
    """The values to so many digits.

    >>> shortened([0.0004240863, 1234.5678], 5)
    [0.00042409, 1234.6]
    """
    return [float(f"{value:.{digits}g}") for value in values]
