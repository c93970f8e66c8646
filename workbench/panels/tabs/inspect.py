"""Inspect: a training step on a batch of the data: format, shape and bytes of each array, and what is made dense."""

import html
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from workbench import training
from workbench.advising import suggest_model
from workbench.advising.advising import load_named
from workbench.analysis.formatting import format_bytes, format_density
from workbench.panels.guard import Guard
from workbench.panels.results_view import Shown
from workbench.panels.tabs import Answer, RequestState, Still, fields_of, register, settings_of_data
from workbench.sweeps import grid
from workbench.sweeps.problem import facts_of, make_problem
from workbench.sweeps.spec import Configuration

ROWS = 256


def inspected(asked: RequestState) -> Shown:
    """Return a table of the arrays in one training step on a batch of `ROWS` rows: format, shape, bytes.

    Reads the data, trains one step in CSR and explains it as HTML and text. The text compares the batch's bytes with
    dense ones. DataError without such data, ModelError if the model cannot be trained on it.
    """
    # batches that repeat are held for sizes
    configuration = Configuration(batch_rows=ROWS, shuffle=False, **_settings(asked))
    problem = make_problem(configuration)
    batch, features = min(ROWS, problem.x.shape[0]), problem.x.shape[1]
    run = training.Run(grid.setup_of(configuration), problem.x, problem.y, problem.width, facts_of(problem.dataset))
    next(iter(run.events(1)))  # a step, so that sizes are those of its batch
    explained = run.executor.explain()
    entries = problem.x.nnz / max(1, problem.x.shape[0]) * batch
    stored = entries * (problem.x.dtype.itemsize + problem.x.indices.dtype.itemsize)
    size = f"{batch:,} rows x {features:,} columns, {format_density(entries / max(1, batch * features))} stored"
    dense = format_bytes(batch * features * problem.x.dtype.itemsize)
    name = Path(configuration.path).name if configuration.path else problem.dataset.name
    text = f"{name}, {configuration.model}: a batch of {size}, is about {format_bytes(stored)}; dense {dense}."
    return Shown(f"<p><strong>{html.escape(text)}</strong></p>{explained.page()}", f"{text}\n{explained}")


def _settings(asked: RequestState) -> dict[str, Any]:
    """Return the settings of data and model; without a chosen model the default for the labels (reads the data)."""
    settings = settings_of_data(asked)
    return {**settings, "model": asked.model or suggest_model(load_named(settings))}


class _Inspect(Still):
    """Data and model are typed, and a button shows them."""

    def __init__(self, asked: RequestState, guard: Guard) -> None:
        """Make the fields for data and model, the button and the answer."""
        self.asked = asked
        self.button = widgets.Button(description="Inspect", tooltip="Show formats and bytes", button_style="primary")
        self.button.on_click(guard("Inspecting", self._inspect))
        self.answer = widgets.HTML()
        self.box = widgets.VBox([fields_of(asked, guard).box, self.button, self.answer])

    def _inspect(self) -> None:
        """Inspect a training step on the chosen data and show it; on an error the answer is cleared."""
        shown, self.answer.value = "", "<p>Reading the data.</p>"
        try:
            shown = inspected(self.asked).html
        finally:
            self.answer.value = shown


register(
    Answer(
        "inspect",
        "Inspect",
        "See a batch and a model: formats and bytes of each array, and what is made dense.",
        4,
        _Inspect,
        lambda asked: inspected(asked),
    )
)
