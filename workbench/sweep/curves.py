"""What a trial keeps of a training as it goes: its losses step by step, and after which epochs its quality is told."""

import numpy as np

from workbench.train import StepEvent

CURVE_POINTS = 200
QUALITY_POINTS = 12


def epochs_judged(epochs: int) -> set[int]:
    """After which of so many epochs the quality is told, beside the clock: at most `QUALITY_POINTS`, the last always.

    >>> sorted(epochs_judged(3)), len(epochs_judged(100)), max(epochs_judged(100))
    ([1, 2, 3], 12, 100)
    """
    return {int(epoch) for epoch in np.linspace(1, epochs, min(epochs, QUALITY_POINTS)).round()}


class Curve:
    """Loss against training seconds, of all steps; thinned when it is written, to six digits: it is most of a row."""

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

    def columns(self) -> dict:
        """Columns of the row: at most `CURVE_POINTS` points, the last always among them."""
        counts = [event.steps for event in self.events]
        seconds = np.cumsum(np.repeat([event.seconds_step / event.steps for event in self.events], counts))
        losses = np.concatenate([[event.loss] if event.losses is None else event.losses for event in self.events])
        first = self.events[0].step - counts[0] + 1
        picked = np.unique(np.linspace(0, len(losses) - 1, CURVE_POINTS).round().astype(int))
        points = [[_short(seconds[i]), _short(losses[i]), first + int(i)] for i in picked]
        return {"curve": points, "loss_first": float(losses[0]), "loss_last": float(losses[-1])}


def _short(value: float) -> float:
    return float(f"{value:.6g}")
