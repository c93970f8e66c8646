"""Sweep: sparse against dense over densities, on data and models that are chosen in the panel."""

from typing import Any

from workbench.advise import settings_of
from workbench.panels.answers import Answer, Asked, register
from workbench.panels.guard import Guard


class _Sweep:
    """The panel of a study."""

    def __init__(self, asked: Asked, _guard: Guard) -> None:
        from workbench.panels.panel import Panel

        self.panel = Panel(_study(asked))
        self.box = self.panel.root

    def paint(self) -> None:
        """Both looks of the panel."""
        self.panel.step()

    def close(self) -> None:
        """The run goes on."""
        self.panel.close()


def _study(asked: Asked) -> Any:
    from workbench.panels import lab

    chosen = settings_of(asked.source)[0] | ({"model": asked.model} if asked.model else {})
    return lab.study(**chosen)


def _shown(asked: Asked) -> Any:
    """Run the sweep, and give its verdict."""
    from workbench.panels import lab

    study = _study(asked)
    lab.run(study)
    return lab.verdict(study)


register(Answer("sweep", "Sweep", "Train sparse and dense over densities, formats and kernels.", 1, _Sweep, _shown))
