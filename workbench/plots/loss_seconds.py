"""Loss against training time, one line a configuration: a step that is faster but trains worse shows here."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from workbench.analysis.compare import HOLDS_ONE, Contest, compare_best
from workbench.analysis.configurations import Record, dense_rows, is_dense
from workbench.analysis.formatting import format_count, format_number, format_seconds, join_items, name_configuration
from workbench.plots import style
from workbench.plots.chart import message, register_chart

NEAR = 0.01
"""The loss of dense is reached where all but this share is done of the drop from dense's first loss to its last."""
AGAIN = 0.1
"""A loss that ends this share of the drop above dense's has risen again: it did not reach it."""
SMOOTH, LEAST = 9, 3
"""Points of a curve whose median is its loss there, and of a short curve: a single batch reaches nothing."""
READABLE = 6
"""Times the end of the shortest line that the axis may reach before it is drawn logarithmic."""


def draw(frame: pd.DataFrame, figure: Figure, *, group: str | None, density: str | None) -> str:
    """Draw loss against training time at one density and return the sentence below the chart.

    `group` and `density` are labels. Lines are running medians over pale losses of single steps, broken where these are
    not finite. The time axis is logarithmic if lines end far apart. A message if there is no curve.
    """
    shown = style.pick(frame, group)
    rows = style.at_density(shown, density)
    trained = [row for row in rows if curve_of(row).size]
    if not trained:
        return message(figure, style.nothing(f"has a loss curve at {density} density"))
    axes = figure.add_subplot()
    for row in trained:
        seconds, loss = curve_of(row).T[:2]
        is_disturbed = style.is_disturbed(row, "seconds_step")
        look = style.disturbed_look(style.look(row)) if is_disturbed else style.look(row)
        look |= {"markevery": max(seconds.size // 8, 1), "markersize": 5}
        axes.plot(seconds, loss, color=look["color"], linewidth=0.8, alpha=0.35)
        axes.plot(seconds, np.where(np.isfinite(loss), smooth(row), np.nan), label=_label(row, rows), **look)
    style.count_lost(axes, rows, [row for row in rows if not curve_of(row).size])
    axes.set_xlabel("training time: steps x time a step", fontsize=style.NORMAL)
    axes.set_ylabel("training loss", fontsize=style.NORMAL)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: format_seconds(value)))
    _scale_time(axes, trained)
    title, sentence = _finding(trained, density)
    style.finish(figure, axes, title, shown, style.at(rows, density))
    return sentence


def curve_of(row: Record) -> np.ndarray:
    """Return a record's loss curve, float64 `[points, 3]`: seconds, loss, step; `[0, 3]` without curve or time.

    The loss is NaN where it was not finite. Seconds are steps times the step time of the configuration, as in all
    charts.
    """
    points = (row["curve"] or []) if style.is_timed(row) else []
    curve = np.array(points, dtype=np.float64).reshape(-1, 3)
    curve = curve[np.isfinite(curve[:, 2])]
    curve[:, 0] = curve[:, 2] * (row["seconds_step"] or 0.0)
    return curve


def _label(row: Record, rows: Sequence[Record]) -> str:
    """Return the legend's text of a record: name, quality, and whether it was disturbed."""
    quality = f", {row['quality_name']} {format_number(row['quality'])}" if row["quality"] is not None else ""
    disturbed = f", {style.DISTURBED}" if style.is_disturbed(row, "seconds_step") else ""
    return f"{style.name(row, rows)}{quality}{disturbed}"


def _scale_time(axes: Axes, rows: Sequence[Record]) -> None:
    """Scale the time axis from 0 to the horizon; logarithmically if the shortest line would be unreadable."""
    horizon, starts = _horizon(rows), [seconds for row in rows for seconds in curve_of(row)[:, 0] if seconds > 0]
    if horizon and starts and horizon > READABLE * min(curve_of(row)[-1, 0] for row in rows):
        axes.set_xscale("log")
        style.log_axis(axes.xaxis, format_seconds, "training time: steps x time a step")
        axes.set_xlim(min(starts) / 1.1, horizon)
    else:
        axes.set_xlim(left=0, right=horizon)


def _horizon(rows: Sequence[Record]) -> float | None:
    """Return the right end of the time axis, seconds: that of dense, else of the longest curve; None if that is 0."""
    ends = [curve_of(row)[-1, 0] for row in rows if is_dense(row)] or [curve_of(row)[-1, 0] for row in rows]
    return max(ends) * 1.05 or None


def smooth(row: Record) -> np.ndarray:
    """Return the running medians of a record's losses, float64 `[points]`; NaN where half of a window is missing."""
    losses = pd.Series(curve_of(row)[:, 1])
    window = max(LEAST, min(SMOOTH, losses.size // 8))
    return losses.rolling(window, min_periods=window // 2 + 1).median().to_numpy()


@dataclass(frozen=True)
class LossTarget:
    """The loss that dense trains to: its `first` loss, its `last` smoothed one, and the loss that counts as reached."""

    first: float
    last: float

    @property
    def drop(self) -> float:
        """Difference of dense's first and last loss, positive."""
        return self.first - self.last

    @property
    def loss(self) -> float:
        """Loss that counts as reached: the last one plus 1 % of the drop."""
        return self.last + NEAR * self.drop

    @classmethod
    def of(cls, dense: Record) -> "LossTarget | None":
        """Return the target set by a dense record; None if its loss does not fall or is not finite at either end."""
        losses = curve_of(dense)[:, 1]
        if losses.size < 2 or not np.isfinite(losses[[0, -1]]).all():
            return None
        target = cls(float(losses[0]), float(smooth(dense)[-1]))
        return target if target.drop > 0 else None

    def starts_lower(self, row: Record) -> bool:
        """Return whether the record's first loss is more than 1 % of `drop` below dense's first loss.

        Such a record is not compared with dense, since its loss has less far to fall.
        """
        return bool(curve_of(row)[0, 1] < self.first - NEAR * self.drop)

    def steps(self, row: Record) -> int | None:
        """Return the steps until the smoothed loss is that of the target.

        None if it never is, rises again, or is not finite at the end.
        """
        curve, losses = curve_of(row), smooth(row)
        at = np.flatnonzero(losses <= self.loss)
        stays = np.isfinite(curve[-1, 1]) and losses[-1] <= self.last + AGAIN * self.drop
        return int(curve[at[0], 2]) if at.size and stays else None


def _finding(rows: Sequence[Record], density: str | None) -> tuple[str, str]:
    """Return (title, sentence) on whether sparse or dense training reaches dense's loss sooner.

    `rows` are the records at the density with the label `density`. If dense has no falling loss, the sentence says so.
    """
    at, targets = style.where(density), [(row, LossTarget.of(row)) for row in dense_rows(rows)]
    known = [(target.steps(row), row, target) for row, target in targets if target]
    timed = [(steps * row["seconds_step"], steps, row, target) for steps, row, target in known if steps]
    if not timed:
        return "Loss against training time", f"{at} dense has no loss that falls, so there is none to reach."
    _, dense_steps, dense, target = min(timed, key=lambda found: _rank(found[2], found[0]))
    sparse = [row for row in rows if not is_dense(row)]
    lower = [name_configuration(row) for row in sparse if target.starts_lower(row)]
    tried = [(target.steps(row), row) for row in sparse if not target.starts_lower(row)]
    never = [name_configuration(row) for steps, row in tried if not steps]
    rest = [f"It is not reached with {join_items(never)}."] if never else []
    rest += [f"{join_items(lower)} cannot be compared: the loss starts lower there."] if lower else []
    got = [(steps * row["seconds_step"], steps, row) for steps, row in tried if steps]
    if not got:
        title = "No sparse configuration reaches the loss of dense" if tried else "Loss against training time"
        return title, " ".join([f"{at} no sparse configuration is seen to reach the loss that dense ends with.", *rest])
    _, steps, row = min(got, key=lambda found: _rank(found[2], found[0]))
    title, sentence = _title_and_sentence(row, steps, dense, dense_steps)
    return title, " ".join([f"{at} {sentence}", *rest])


def _rank(row: Record, seconds: float) -> tuple[bool, float]:
    """Return a sort key for records, the smallest first: undisturbed ones, then by `seconds`."""
    return style.is_disturbed(row, "seconds_step"), seconds


def _title_and_sentence(row: Record, steps: int, dense: Record, dense_steps: int) -> tuple[str, str]:
    """Return (title, sentence) on who reaches dense's loss sooner, the sparse `row` or `dense`, after these steps."""
    each = compare_best([row], [dense], "seconds_step")
    mine, its = style.seconds(row, steps), style.seconds(dense, dense_steps)
    after = (
        f"after {format_count(steps, 'step')} of {name_configuration(row)} and "
        f"{dense_steps} of {name_configuration(dense)}"
    )
    verdict = _sooner(each, dense_steps / steps)
    if verdict == "sparse":
        took = f"in {mine} instead of {its}"
        return f"Sparse reaches the loss of dense {took}", f"sparse reaches the loss of dense {took}, {after}."
    if verdict == "dense":
        took = f"in {its}, sparse in {mine}"
        return f"Dense reaches its loss {took}", f"dense reaches its loss {took}, {after}."
    found = "equal (within 10 %)" if verdict == "level" else f"inconclusive, {each.why or HOLDS_ONE}"
    return (
        f"Time to the loss of dense is {found}",
        f"the time to the loss of dense is {found}: {mine} and {its}, {after}.",
    )


def _sooner(each: Contest, share: float) -> str:
    """Return the verdict ("sparse", "dense", "level" or "inconclusive") on the time to a loss.

    `each` compares the step times; `share` is dense's number of steps over sparse's.
    """
    if each.ratio is None:
        return "inconclusive"
    ends = {name: getattr(each.ratio, name) * share for name in ("value", "low", "high")}
    return each.ratio._replace(**ends).verdict


def table(frame: pd.DataFrame, *, group: str | None, density: str | None) -> pd.DataFrame:
    """Return first and last loss, time and steps trained, and quality of each record as text.

    `group` and `density` are labels, such as "5 %"; `group` None is the largest.
    """
    rows = style.at_density(style.pick(frame, group), density)
    return pd.DataFrame([_described(row) for row in rows])


def _described(row: Record) -> dict[str, str]:
    """Return configuration, losses, time and steps of training, quality and result of a record as texts, by column."""
    shown = lambda value: "" if value is None else format_number(value)  # noqa: E731
    curve = curve_of(row)
    known = {
        "configuration": name_configuration(row),
        "first loss": shown(row["loss_first"]),
        "last loss": shown(row["loss_last"]),
    }
    known |= {
        "trained": style.seconds(row, int(curve[-1, 2])) if curve.size else "",
        "steps": f"{curve[-1, 2]:.0f}" if curve.size else "",
    }
    known[row["quality_name"] or "quality"] = shown(row["quality"])
    return known | {"result": style.result_of(row)}


register_chart(__name__, "Loss against training time", (style.group_control(), style.density_control()))
