"""A slider and a field beside it for the same number: what can be dragged can be typed, and typed exactly."""

from collections.abc import Callable, Sequence

import ipywidgets as widgets

from workbench.panels.form import LABELLED


class Twins:
    """`tell` says a number in words, `chosen` gets what was typed, or what the slider's place is called."""

    def __init__(self, label: str, help: str, tell: Callable[[float], str], chosen: Callable[[str], None]) -> None:
        self.tell, self.chosen, self._is_showing = tell, chosen, False
        self.slider = widgets.SelectionSlider(
            options=[("", 0.0)], description=label, tooltip=help, continuous_update=False, style=LABELLED
        )
        self.text = widgets.Text(description=f"{label} (typed)", tooltip=help, continuous_update=False, style=LABELLED)
        self.slider.observe(lambda change: self._choose(repr(change["new"])), names=["value"])
        self.text.observe(lambda change: self._choose(change["new"]), names=["value"])

    def _choose(self, text: str) -> None:
        if not self._is_showing:
            self.chosen(text)

    def show(self, value: float | None, places: Sequence[float]) -> None:
        """Show a number; the slider at the nearest of its places."""
        self._is_showing = True
        try:
            options = [(self.tell(place), place) for place in places] or [("", 0.0)]
            if list(self.slider.options) != options:
                self.slider.options = options
            self.slider.value = min((place for _, place in options), key=lambda place: abs(place - (value or 0.0)))
            self.slider.disabled = len(places) < 2
            self.text.value = self.tell(value) if value else ""
        finally:
            self._is_showing = False
