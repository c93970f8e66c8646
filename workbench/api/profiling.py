"""The profile of data: how sparse it is, and what that decides."""

import dataclasses
import html
from typing import Any

from kernels.registry import format_count
from workbench import data
from workbench.analysis import formatting
from workbench.api import results
from workbench.api.loading import receive
from workbench.data.errors import MissingLabelsError


class Profiled:
    """Facts of sparsity of one data set: text in a terminal, a table and a picture in a notebook.

    Attributes
    ----------
    facts : workbench.data.Profile
        Every count by name, such as `facts.density`.
    table : pandas.DataFrame
        The most important facts, one a line: columns `fact` and `value`.

    Examples
    --------
    >>> import workbench as wb
    >>> profile = wb.profile([[1.0, 0.0], [0.0, 2.0]])
    >>> profile
    Profile of memory: 2 rows x 2 features, density 0.5
    >>> profile.facts.entries
    2
    """

    def __init__(self, facts: data.Profile, is_labelled: bool) -> None:
        """Store the computed profile; `is_labelled` says whether labels are shown."""
        self.facts, self._is_labelled = facts, is_labelled

    @property
    def density(self) -> float:
        """Stored entries / (rows * features)."""
        return self.facts.density

    @property
    def rows_shown(self) -> list[tuple[str, str]]:
        """(fact, value as text) of the facts that are shown."""
        facts = self.facts
        sizes = {name: formatting.format_bytes(size) for name, size in facts.bytes_format.items()}
        dense = sizes.pop("dense")
        shown_facts = [
            ("rows x features", f"{facts.rows:,} x {facts.features:,}"),
            ("entries", f"{facts.entries:,}"),
            ("density", formatting.format_density(facts.density)),
            ("memory as csr", sizes["csr"]),
            ("memory as dense", dense),
            ("duplicate rows", f"{facts.duplicate_rows:,}"),
        ]
        if self._is_labelled:
            labels = facts.labels
            many = format_count(labels.classes, "class") if labels.classes else labels.kind
            shown_facts.append(("labels", many))
        return shown_facts

    @property
    def table(self) -> Any:
        """The facts that are shown, as a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame(self.rows_shown, columns=["fact", "value"])

    def plot(self, chart: str = "profile", figure: Any = None) -> Any:
        """Draw a chart of the profile and return its Axes.

        Parameters
        ----------
        chart : str
            One of `workbench.plots.names("profile")`.
        figure : matplotlib.figure.Figure, optional
            Figure to draw on; by default a new one.

        Returns
        -------
        matplotlib.axes.Axes
            The first axes of the figure.
        """
        return results.plot(chart, self._frame, figure)

    @property
    def _frame(self) -> Any:
        """The profile as a pandas frame of one row, as charts take it."""
        import pandas as pd

        return pd.DataFrame([dataclasses.asdict(self.facts)])

    def __repr__(self) -> str:
        """Return name, size and density as one line."""
        facts = self.facts
        size = f"{format_count(facts.rows, 'row')} x {format_count(facts.features, 'feature')}"
        return f"Profile of {facts.name}: {size}, density {facts.density:.3g}"

    def __str__(self) -> str:
        """Return the facts as plain text, one per line."""
        width = max(len(name) for name, _ in self.rows_shown)
        return "\n".join([repr(self), *(f"  {name:{width}}  {value}" for name, value in self.rows_shown)])

    def _repr_html_(self) -> str:
        """Return the profile as HTML for a notebook, with its chart."""
        items = results.table(("fact", "value"), self.rows_shown)
        return results.page(f"<p><strong>{html.escape(repr(self))}</strong></p>{items}", self._frame, "profile")


def profile(source: Any, *, label: str | None = None, **reading: Any) -> Profiled:
    """Count what decides whether sparse formats pay; labels are not needed.

    Parameters
    ----------
    source : anything that `load` takes
        A path, the name of a data set, or a matrix in memory.
    label, **reading
        As of `load`.

    Returns
    -------
    Profiled
        The facts, shown as a table and a picture in a notebook.

    Raises
    ------
    ValueError
        If the data cannot be read; the message ends with what to type.

    Examples
    --------
    >>> import numpy as np, workbench as wb
    >>> wb.profile(np.eye(4)).density
    0.25
    """
    try:
        loaded = receive(source, None, label, reading)
    except MissingLabelsError:
        loaded = receive(source, None, None, {**reading, "kind": "none"})
    return Profiled(data.profile(loaded.dataset), loaded.is_labelled)
