"""The panel in a notebook, on a file, a data set, or what is in memory."""

from typing import Any

from workbench.api import sweeping
from workbench.api.loading import received

OUTSIDE = (
    "wb.lab shows its panel in a notebook, and this is none.\n"
    "Type workbench lab in a shell to open JupyterLab, or wb.advise(X, y) for an answer here."
)


class ShownPanel:
    """The panel that `lab` has shown: as the last line of a cell it is not shown a second time."""

    def __init__(self, panel: Any) -> None:
        self.panel = panel

    def __getattr__(self, name: str) -> Any:
        """Return the attribute of that name of the panel."""
        return getattr(self.panel, name)

    def __repr__(self) -> str:
        return "The panel is shown above."

    def _ipython_display_(self) -> None:
        """Show nothing: the panel stands above already."""


def lab(
    X: Any = None, y: Any = None, *, label: str | None = None, show_widgets: bool | None = None, **reading: Any
) -> Any:
    """Show the panel: choose model and densities, start a sweep, watch the chart grow, and open it again later.

    Parameters
    ----------
    X : anything that `load` takes, optional
        Data that the panel begins with; by default a built-in data set.
    y : array of shape [rows], optional
        Labels of a matrix in memory.
    label : str, optional
        Name of the column of labels, of a frame or a table in a file.
    show_widgets : bool, optional
        Whether to show widgets; by default only if somebody is there to click.
    **reading
        Settings of the reader, as of `load`.

    Returns
    -------
    ShownPanel or None
        The panel, which is shown already; None without a front end, where one line says how to open a notebook.

    Examples
    --------
    >>> import workbench as wb
    >>> wb.lab()
    wb.lab shows its panel in a notebook, and this is none.
    Type workbench lab in a shell to open JupyterLab, or wb.advise(X, y) for an answer here.
    """
    try:
        from workbench.panels import lab as panels
    except ImportError as error:
        print(f"The panel needs ipywidgets ({error}).\nType pip install 'sparse-workbench[lab]'.")
        return None
    if not (panels.has_front_end() if show_widgets is None else show_widgets):
        print(OUTSIDE)
        return None
    if X is None:
        return ShownPanel(panels.show(panels.study(), True))
    loaded = received(X, y, label, reading)
    folder = sweeping.run_of(loaded)
    sweeping.write_once(loaded, folder)
    settings: dict[str, Any] = {name: str(value) for name, value in sweeping.settings_of(loaded, folder).items()}
    return ShownPanel(panels.show(panels.study(name=folder.name, **settings), True))
