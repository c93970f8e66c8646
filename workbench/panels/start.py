"""The first panel: one question, "What do you want to know?", and an answer for each button."""

from typing import Any

import ipywidgets as widgets

from workbench.panels import tabs
from workbench.panels.form import LABELLED
from workbench.panels.guard import Guard
from workbench.panels.live import trouble
from workbench.panels.state import trouble_of
from workbench.panels.style import NAMES, SHEET, Watcher
from workbench.panels.tabs import RequestState, View

QUESTION = "What do you want to know?"
HINT = "The panel needs a running kernel. The cells below answer without it."


class Start:
    """Buttons, and the view of the selected one, created on first use. Nothing runs until `watch`."""

    def __init__(self, asked: RequestState, answer: str = "advise") -> None:
        tabs.get(answer)
        self.asked, self.views = asked, dict[str, View]()
        self.guard = Guard(self._tell, self._forget)
        options = [(tabs.get(name).label, name) for name in tabs.names()]
        meanings = [tabs.get(name).meaning for name in tabs.names()]
        self.buttons = widgets.ToggleButtons(
            options=options, value=answer, tooltips=meanings, description=QUESTION, tooltip=QUESTION, style=LABELLED
        )
        self.meaning, self.trouble, self.content = widgets.HTML(), widgets.HTML(), widgets.VBox()
        self.root = widgets.VBox([widgets.HTML(SHEET + NAMES), self.buttons, self.meaning, self.trouble, self.content])
        self.root.add_class("workbench-lab")
        self.content.add_class("wb-answer")
        self.buttons.observe(self.guard("Opening the answer", self.open), names=["value"])
        self.watcher = Watcher(self.guard.passive_callback("Showing the answer", self.paint))
        self.guard("Opening the answer", self.open)()

    @property
    def view(self) -> View | None:
        """View that is shown."""
        return self.views.get(self.buttons.value)

    def open(self) -> None:
        """Show the answer whose button is pressed."""
        name = self.buttons.value
        self.meaning.value, self.content.children = tabs.get(name).meaning, ()
        if name not in self.views:
            self.content.children = (widgets.HTML('<p role="status">Opening.</p>'),)
            self.views[name] = tabs.get(name).view(self.asked, self.guard)
        self.content.children = (self.views[name].box,)

    def paint(self) -> None:
        """Bring what is shown up to date."""
        if self.view is not None:
            self.view.paint()

    def _forget(self) -> None:
        """Forget what went wrong before, as the user asks for the next thing."""
        self.trouble.value = ""

    def _tell(self, error: Exception, what: str) -> None:
        """Show an error."""
        self.trouble.value = trouble(trouble_of(error, what))

    def watch(self) -> None:
        """Start the thread that paints."""
        self.watcher.start()

    def close(self) -> None:
        """End the thread and what the answers started."""
        self.watcher.stop()
        for view in self.views.values():
            view.close()
        self.root.close()

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        """Return what Jupyter displays, with a hint for viewers without widgets."""
        bundle = self.root._repr_mimebundle_(**options) or {}
        return dict(bundle) | {"text/html": f"<p>{HINT}</p>", "text/plain": HINT}
