"""Sweep: sparse against dense over densities, on data and models that are chosen in the panel."""

from typing import Any

from workbench.panels import state
from workbench.panels.guard import Guard
from workbench.panels.state import LabState
from workbench.panels.tabs import OF_DATA, Answer, RequestState, register, settings_of_data
from workbench.study import suited
from workbench.sweeps import run_folder
from workbench.sweeps.spec import SpecError

FOLLOWING = ("dataset", "path", "labels", "columns", "kind", "reading", "model", *suited.OF_FILES)
SUBJECT = (*OF_DATA, "model")
"""Choices that follow from what is asked about."""


class _Sweep:
    """The panel of a study."""

    def __init__(self, asked: RequestState, _guard: Guard) -> None:
        """Make the panel of the study for the requested data; its threads are not started, `paint` steps it."""
        from workbench.panels.panel import Panel

        self.asked, self.of = asked, _subject(asked)
        self.panel = Panel(_study(asked))
        self.box = self.panel.root

    def paint(self) -> None:
        """Change the panel's data and model if the request has changed and no run is alive, then step the panel."""
        if self.of != _subject(self.asked) and not self.panel.state.alive:
            self.of = _subject(self.asked)
            known = suited.complete_with_suggestions(settings_of_data(self.asked))
            self.panel.state.choose(**{name: known[name] for name in FOLLOWING})
        self.panel.step()

    def close(self) -> None:
        """Close the panel; the run itself goes on."""
        self.panel.close()


def _study(asked: RequestState) -> LabState:
    """Return the study of the request; while that has its defaults, the choices of the run a panel started last."""
    from workbench.panels import lab

    is_untouched = _subject(asked) == _subject(RequestState())
    if is_untouched and (chosen := _swept_last()):
        return LabState("", chosen)
    return lab.study(name="", **settings_of_data(asked))


def _swept_last() -> dict[str, Any]:
    """Return the choices of the newest run that a panel started; {} if there is none or they are invalid now."""
    newest = next(filter(None, map(state.chosen_of, run_folder.list_runs())), None)
    if newest is None:
        return {}
    try:
        return suited.complete_with_suggestions(newest.chosen)
    except SpecError:
        return {}


def _subject(asked: RequestState) -> tuple[str, ...]:
    """Return the request's data and model as a tuple, to detect changes."""
    return tuple(getattr(asked, name) for name in SUBJECT)


def _shown(asked: RequestState) -> Any:
    """Run the sweep of the request to its end, and return its verdict."""
    from workbench.panels import lab

    study = _study(asked)
    lab.run(study)
    return lab.verdict(study)


register(Answer("sweep", "Sweep", "Train sparse and dense over densities, formats and kernels.", 1, _Sweep, _shown))
