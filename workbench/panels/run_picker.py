"""A drop-down of existing runs, updated as new runs appear."""

from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets as widgets

from workbench.panels.form import LABELLED
from workbench.sweeps import run_folder


def runs() -> list[str]:
    """Return the run folders below `runs`, the newest first."""
    return [str(path) for path in run_folder.list_runs()]


def _nothing() -> None:
    """Leave it at the choice."""


class RunPicker:
    """Offers the runs, `named` ones first; `chosen` is called when the user takes another."""

    def __init__(self, label: str, help: str, named: Sequence[str], chosen: Callable[[], Any] = _nothing) -> None:
        self.named, self._is_filling = [name for name in named if name], False
        self.widget = widgets.Dropdown(description=label, tooltip=help, style=LABELLED)
        self.widget.observe(lambda _: None if self._is_filling else chosen(), names=["value"])
        self.refresh()

    @property
    def value(self) -> str:
        """Run that is chosen; "" if there is none."""
        return self.widget.value or ""

    @property
    def known(self) -> tuple[str, ...]:
        """Runs that are offered."""
        return tuple(self.widget.options)

    def show(self, run: str) -> None:
        """Select a run, also one outside the root folder, without notifying observers."""
        if run not in self.known:
            self.named = [run, *self.named]
            self.refresh()
        self._is_filling = True
        try:
            self.widget.value = run
        finally:
            self._is_filling = False

    def refresh(self) -> bool:
        """Offer the runs there are now, and say whether these are others than before; what was chosen stays."""
        known = tuple(dict.fromkeys([*self.named, *runs()]))
        if known == self.known:
            return False
        self._is_filling, before = True, self.value
        try:
            self.widget.options = known
            self.widget.value = before if before in known else next(iter(known), None)
        finally:
            self._is_filling = False
        return True
