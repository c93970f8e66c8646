"""Quality on held-out rows against the time of training: which configurations no other beats in both."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from workbench.analysis import formatting
from workbench.analysis.configurations import Record
from workbench.analysis.curves import (
    TrainedRecord,
    UpdateDifference,
    differences_from_dense_update,
    pareto_front,
    quality_target,
    trained_records,
)
from workbench.plots import style
from workbench.plots.chart import message, register_chart


def draw(frame: pd.DataFrame, figure: Figure, *, group: str | None, density: str | None) -> str:
    """Draw held-out quality against logarithmic training time at one density; return the sentence below.

    `group` and `density` are labels, such as "5 %"; `group` None is the largest. A line joins the Pareto-optimal
    points. A message if nothing trained epochs there.
    """
    shown = style.pick(frame, group)
    rows = style.at_density(shown, density)
    found = trained_records(rows)
    if not found:
        return message(figure, style.nothing(f"trained epochs and has a quality at {density} density"))
    axes = figure.add_subplot()
    best = pareto_front(found)
    axes.plot(
        [one.seconds for one in best], [one.quality for one in best], color=style.GREY, linewidth=1.2,
        linestyle="--", drawstyle="steps-post", label="none other is as fast and better", zorder=1,
    )  # fmt: skip
    for one in found:
        look = style.look(one.row) | {"linestyle": "none", "markersize": 9}
        axes.plot([one.seconds], [one.quality], label=style.name(one.row, rows), **look)
    axes.set_xscale("log")
    style.log_axis(axes.xaxis, formatting.format_seconds, "training time")
    axes.set_ylabel(f"{_measure(found)} on held-out rows (more is better)", fontsize=style.NORMAL)
    axes.margins(x=0.15)
    title, sentence = _finding(found, best, rows, density)
    style.finish(figure, axes, title, shown, style.at(rows, density))
    return sentence


def _measure(found: Sequence[TrainedRecord]) -> str:
    """Return the name of the quality measure of the first record, "quality" if it has none."""
    return found[0].row["quality_name"] or "quality"


def _finding(
    found: Sequence[TrainedRecord], best: Sequence[TrainedRecord], rows: Sequence[Record], density: str | None
) -> tuple[str, str]:
    """Return (title, sentence) on the fastest, the best, and who reaches the quality of dense.

    `found` are all trainings, `best` the Pareto-optimal ones by rising time, `rows` their records, `density` the label
    that the sentence names.
    """
    where, first, last = style.where(density), best[0], best[-1]
    name = _measure(found)
    each = (
        f"{formatting.name_configuration(first.row)} in {formatting.format_seconds(first.seconds, 2)} with "
        f"{name} {formatting.format_number(first.quality)}"
    )
    if first is last:
        title = f"{formatting.short_configuration_name(first.row)} is the fastest and the best"
        text = f"{where} {each} is the fastest, and none is better."
    else:
        title = "More quality takes more time"
        other = (
            f"{formatting.name_configuration(last.row)} in {formatting.format_seconds(last.seconds, 2)} "
            f"with {formatting.format_number(last.quality)}"
        )
        text = f"{where} the fastest is {each}; the best is {other}."
    return title, " ".join(filter(None, (text, _reached(found, rows), *_drifts(differences_from_dense_update(rows)))))


def _reached(found: Sequence[TrainedRecord], rows: Sequence[Record]) -> str:
    """Return a sentence on who reaches dense's quality (less 1 %) first and who never; "" without a target."""
    target = quality_target(rows)
    if target is None:
        return ""
    there = sorted((one for one in found if one.reached is not None), key=lambda one: one.reached or 0.0)
    never = [formatting.name_configuration(one.row) for one in found if one.reached is None]
    text = f"A held-out {target.measure} of {formatting.format_number(target.value)}, what dense comes to less 1 %,"
    first = (
        f" {formatting.name_configuration(there[0].row)} reaches first, in "
        f"{formatting.format_seconds(there[0].reached or 0.0, 2)}"
        if there
        else ""
    )
    lost = f"; never: {formatting.join_items(never)}" if never and there else " none reaches" if not there else ""
    return f"{text}{first}{lost}."


def _drifts(found: Sequence[UpdateDifference]) -> list[str]:
    """Return a sentence for lazy and for exact updates on the largest change of quality against the dense update."""
    said = []
    for update in ("lazy", "exact"):
        own = [one for one in found if one.row["update"] == update and one.quality is not None]
        if own:
            most = max(own, key=lambda one: abs(one.quality or 0.0))
            said.append(
                f"Against the standard update {update} ones move the quality by {_signed(most.quality)} at most "
                f"({formatting.name_configuration(most.row)})."
            )
    return said


def _signed(value: float | None) -> str:
    """Return a number as text with its sign, "+0.12"; "" for None."""
    if value is None:
        return ""
    return f"{'-' if value < 0 else '+' if value > 0 else ''}{formatting.format_number(abs(value), 2)}"


def table(frame: pd.DataFrame, *, group: str | None, density: str | None) -> pd.DataFrame:
    """Return time, quality, time to dense's quality, and change by the update as text, a row for each record.

    `group` and `density` are labels, such as "5 %"; `group` None is the largest.
    """
    rows = style.at_density(style.pick(frame, group), density)
    found = trained_records(rows)
    best, changes = (
        {id(one.row) for one in pareto_front(found)},
        {id(one.row): one for one in differences_from_dense_update(rows)},
    )
    by_row, has_target = {id(one.row): one for one in found}, quality_target(rows) is not None
    return pd.DataFrame(
        [
            {"configuration": formatting.name_configuration(row)}
            | _described(by_row.get(id(row)), has_target)
            | _change(changes.get(id(row)))
            | {"on the frontier": "" if id(row) not in by_row else "yes" if id(row) in best else "no"}
            | {"result": style.result_of(row)}
            for row in rows
        ]
    )


def _described(one: TrainedRecord | None, has_target: bool) -> dict[str, str]:
    """Return {"trained", "quality", "to dense's quality"} of a record as texts; all "" for None.

    With `has_target` but a target never reached the last is "never".
    """
    if one is None:
        return {"trained": "", "quality": "", "to dense's quality": ""}
    reached = "" if not has_target else "never" if one.reached is None else formatting.format_seconds(one.reached, 2)
    quality = f"{formatting.format_number(one.quality)} {one.row['quality_name'] or ''}".strip()
    return {"trained": formatting.format_seconds(one.seconds, 2), "quality": quality, "to dense's quality": reached}


def _change(change: UpdateDifference | None) -> dict[str, str]:
    """Return {"loss moved by", "quality moved by"} against the dense update as texts with signs; "" if unknown."""
    loss, quality = (change.loss, change.quality) if change else (None, None)
    return {"loss moved by": _signed(loss), "quality moved by": _signed(quality)}


register_chart(__name__, "Quality against time", (style.group_control(), style.density_control()))
