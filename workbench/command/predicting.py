"""`workbench forecast`: a cost model fitted on stored rows, its error, and where break-evens go."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd
from rich.table import Table

from kernels.registry import format_count
from workbench import store
from workbench.advising import cost_model
from workbench.advising.cost_model import CostModel, Crossing
from workbench.analysis import configurations
from workbench.analysis.formatting import format_density, format_number, format_seconds, name_configuration
from workbench.command import terminal
from workbench.command.console import make_table
from workbench.command.output import echo
from workbench.reports import results

FACTOR = 4.0
WHAT = {"width": "width", "batch": "rows of a batch", "features": "features", "skew": "columns in use"}


def predict(runs: Sequence[Path], out: Path | None = None) -> None:
    """Fit cost models on the records of these runs; print coefficients, errors and break-evens.

    `out` None or a file to write: a chart (.svg, .png) or its numbers (.csv). A message if there are too few records.
    """
    if out is not None:
        results.refuse_unknown(out)
    rows = configurations.records(
        configurations.pool_rounds(store.frame([row for run in runs for row in store.read(run)]))
    )
    fits = cost_model.fit_cost_models(rows)
    if not fits:
        echo(f"No configuration has {cost_model.LEAST} rows with a time on the CPU; measure at more densities.")
        return
    terminal.console.print(_model_table(fits))
    for line in error_sentences(rows):
        terminal.console.print(line, markup=False, highlight=False)
    for title, crossings in _crossings(rows, fits):
        terminal.console.print(_crossing_table(title, crossings))
    if out is not None:
        terminal.console.print(results.write(predicted_records(rows), out), markup=False, highlight=False)
        terminal.console.print(f"Measured against predicted: {out}", markup=False, highlight=False, soft_wrap=True)


def predicted_records(rows: Sequence[configurations.Record]) -> pd.DataFrame:
    """Return measured and predicted seconds of each record, a row each, for the chart of predictions.

    Each is predicted from other data sets, or with one data set alone from the other records.
    """
    found, left_out = cost_model.predictions(rows), "data set"
    if not found:
        found, left_out = cost_model.predictions_within(rows), "row"
    shown = (*cost_model.ALIKE, "batch_rows", "width")
    return pd.DataFrame(
        [
            {name: one.row[name] for name in shown}
            | {"data": _data_sentence(cost_model.data_of(one.row)), "density": one.row["density_measured"]}
            | {"seconds": one.row["seconds_step"], "seconds_predicted": one.seconds}
            | {"is_extrapolated": one.is_extrapolated, "left_out": left_out}
            for one in found
        ]
    )


def _data_sentence(data: tuple) -> str:
    """Return "NAME, 1,000 rows x 200" for (data set, path or None, rows, features)."""
    dataset, path, total, features = data
    return f"{Path(path).name if path else dataset}, {format_count(total, 'row')} x {features:,}"


def _model_table(fits: Sequence[CostModel]) -> Table:
    """Return a table of the fitted coefficients as rates, a row for each configuration."""
    rows = []
    for fit in fits:
        fixed, moved, gathered, operations = fit.coefficients
        rates = [_rate(moved, "B/s"), _rate(gathered, "B/s"), _rate(operations, "flop/s")]
        trained = f"{fit.settings['model']}, {fit.settings['optimizer']}"
        seconds = format_seconds(fixed, 2)
        rows.append([name_configuration(fit.settings), trained, str(fit.rows), seconds, *rates])
    columns = ("configuration", "model, optimizer", "rows", "fixed", "bytes", "gathered", "operations")
    return make_table(columns, rows, "Seconds of a step: fixed + bytes + gathered bytes + operations")


def _rate(seconds_each: float, unit: str) -> str:
    """Return the rate of a coefficient in seconds per unit, as "12 GB/s"; "-" if it is 0."""
    return f"{format_number(1e-9 / seconds_each, 2)} G{unit}" if seconds_each > 0 else "-"


def error_sentences(rows: Sequence[configurations.Record]) -> Iterator[str]:
    """Yield sentences on the error when each data set, and each single record, is left out of the fit."""
    by_data = cost_model.error_by_data_set(rows)
    for data, error in by_data.items():
        name = _data_sentence(data)
        yield (
            f"Error where {name} was left out: {format_density(error, 2)}, the median of |log(predicted / measured)|."
        )
    within = cost_model.median_log_error(cost_model.predictions_within(rows))
    if within is not None:
        yield f"Error where one row was left out: {format_density(within, 2)}."
    if not by_data:
        yield "There is one data set alone: how well others are predicted is not known."


def _crossings(
    rows: Sequence[configurations.Record], fits: Sequence[CostModel]
) -> Iterator[tuple[str, list[Crossing]]]:
    """Yield (name, predicted break-evens as sizes change) of each sparse configuration against the best dense one."""
    shared = [name for name in cost_model.ALIKE if name not in cost_model.LINE]
    for sparse in (fit for fit in fits if fit.settings["format"] != "dense"):
        against = (fit for fit in fits if fit.settings["format"] == "dense")
        dense = [one for one in against if all(one.settings[name] == sparse.settings[name] for name in shared)]
        usable = filter(cost_model.is_usable, rows)
        own = [row for row in usable if all(row[name] == value for name, value in sparse.settings.items())]
        if dense and own:
            yield (
                name_configuration(sparse.settings),
                cost_model.crossing_sensitivities(sparse, dense, cost_model.sizes_of(own[0]), FACTOR),
            )


def _crossing_table(title: str, crossings: Sequence[Crossing]) -> Table:
    """Return a table of the density at which dense becomes faster, as measured and for each changed size."""
    rows = []
    for crossing in crossings:
        change = f"{format_number(crossing.factor)} x the {WHAT[crossing.what]}" if crossing.what else "as measured"
        density = "none found" if crossing.density is None else format_density(crossing.density, 2)
        rows.append([change, density, "extrapolated" if crossing.is_extrapolated else ""])
    return make_table(("what changes", "density", ""), rows, f"Where dense becomes faster than {title}")
