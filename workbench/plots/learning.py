"""Loss, or quality on held-out rows, against training time: a step that is faster but trains worse shows here."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from workbench.analysis.compare import HOLDS_ONE, Contest, compare_best
from workbench.analysis.configurations import Record, dense_rows, groups, is_dense, line_key, records
from workbench.analysis.curves import SMALLER, quality_target, trained_records
from workbench.analysis.formatting import (
    format_count,
    format_number,
    format_seconds,
    join_items,
    name_configuration,
)
from workbench.plots import style
from workbench.plots.chart import Control, message, register_chart

NEAR = 0.01
"""The loss of dense is reached where all but this share is done of the drop from dense's first loss to its last."""
AGAIN = 0.1
"""A loss that ends this share of the drop above dense's has risen again: it did not reach it."""
SMOOTH, LEAST = 9, 3
"""Points of a curve whose median is its loss there, and of a short curve: a single batch reaches nothing."""
FEW = 4
"""Lines that are all named; of more, the best two."""
DASHES = ("-", (0, (6, 1.5)), (0, (2, 1.2)), (0, (6, 1.5, 1.5, 1.5)))
"""Line styles of named candidates that have one colour."""
READABLE = 6
"""Times the end of the shortest line that the axis may reach before it is drawn logarithmic."""


def draw(frame: pd.DataFrame, figure: Figure, *, group: str | None, density: str | None, measure: str) -> str:
    """Draw training loss, or quality on held-out rows, against training time; return the sentence below the chart.

    `group` and `density` are labels, such as "5 %"; `measure` is "loss", "quality" or the name of a measure. The best
    sparse and the best dense candidate are bold; their losses are running medians over pale ones of single steps. The
    time axis is logarithmic if lines end far apart. A message if there is no curve.
    """
    for shown in (style.pick(frame, group), *groups(frame)):  # another one if that has no curve of the measure
        rows = style.at_density(shown, density)
        name = _measure(rows) if measure == "quality" else measure
        curves = curve_of if measure == "loss" else partial(quality_curve, measure=name)
        if trained := [row for row in rows if curves(row).size]:
            break
    else:
        return message(figure, style.nothing(f"has a curve of {measure} at {density} density"))
    axes, best = figure.add_subplot(), style.best_lines(shown)
    are_named = len(set(map(line_key, trained))) <= FEW
    ends: dict[str, style.Label] = {}
    alike: dict[str, list[str]] = {}
    for row in trained:
        is_best = line_key(row) in best
        look, who = style.look(row, is_best), name_configuration(row)
        same = alike.setdefault(look["color"], [])
        same += [] if who in same else [who]
        if are_named and same.index(who):
            look["linestyle"] = DASHES[same.index(who)]
        seconds, values = curves(row).T[:2]
        if measure == "loss":
            if is_best:
                axes.plot(seconds, values, color=look["color"], linewidth=0.8, alpha=0.3, label="_")
            values = np.where(np.isfinite(values), smooth(row), np.nan)
        axes.plot(seconds, values, label=f"_{who}", **look)
        last = np.flatnonzero(np.isfinite(values))
        if last.size and (is_best or are_named):
            ends.setdefault(who, (seconds[last[-1]], values[last[-1]], who, look["color"]))
    label = "training loss" if measure == "loss" else f"{name} on held-out rows"
    style.value_axis(axes.yaxis, format_number, label)
    style.value_axis(axes.xaxis, format_seconds, "training time")
    last_seconds = [curves(row)[-1, 0] for row in trained]
    if max(last_seconds) > READABLE * min(last_seconds) > 0:
        axes.set_xscale("log")
        style.log_axis(axes.xaxis, format_seconds, "training time")
    else:
        axes.set_xlim(left=0)
    title, sentence = _loss_finding(trained, density) if measure == "loss" else _quality_finding(trained, density, name)
    lost = style.count_lost(rows, [row for row in rows if row not in trained])
    style.finish(figure, axes, title, shown, "; ".join(filter(None, (style.at(rows, density), lost))))
    style.label_ends(axes, list(ends.values()))
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


def quality_curve(row: Record, measure: str) -> np.ndarray:
    """Return a record's curve on held-out rows, float64 `[points, 2]`: seconds and the measure."""
    points = [(point["seconds"], point.get(measure)) for point in row["quality_curve"] or ()]
    known = [point for point in points if None not in point]
    return np.array(known, dtype=np.float64).reshape(-1, 2)


def _measures(frame: pd.DataFrame) -> tuple[str, ...]:
    """Return what may be drawn of records: the loss, the quality, and each measure that their curves have."""
    points = [point for row in records(frame) for point in row["quality_curve"] or ()] if len(frame) else []
    known = dict.fromkeys(name for point in points for name in point if name not in ("epoch", "seconds"))
    return ("loss", "quality", *known)


def _measure(rows: Sequence[Record]) -> str:
    """Return the measure of held-out rows: that of the target that dense sets, else the first quality's name."""
    target = quality_target(rows)
    return target.measure if target else next((row["quality_name"] for row in rows if row["quality_name"]), "quality")


def _quality_finding(rows: Sequence[Record], density: str | None, measure: str) -> tuple[str, str]:
    """Return (title, sentence) on who reaches the quality of dense, less 1 %, first, and who never.

    Without such a target in the measure: on who ends with the best value.
    """
    target, found = quality_target(rows), trained_records(rows)
    there = sorted((one for one in found if one.reached is not None), key=lambda one: one.reached or 0.0)
    if target is None or target.measure != measure or not there:
        last = [(quality_curve(row, measure)[-1, 1], row) for row in rows]
        value, best = (min if measure in SMALLER else max)(last, key=lambda pair: pair[0])
        text = f"ends with the best {measure}, {format_number(value)}"
        title = f"{name_configuration(best)} {text}"
        return title, f"{style.where(density)} {name_configuration(best)} {text}."
    never = [name_configuration(one.row) for one in found if one.reached is None]
    side = "Dense" if is_dense(there[0].row) else "Sparse"
    each = [f"{name_configuration(one.row)} in {format_seconds(one.reached or 0.0, 2)}" for one in there[:3]]
    end = f"; never: {join_items(never)}" if never else ""
    value = f"a held-out {target.measure} of {format_number(target.value)}, that of dense less 1 %,"
    return (
        f"{side} reaches the quality of dense first",
        f"{style.where(density)} {value} is reached by {join_items(each)}{end}.",
    )


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


def _loss_finding(rows: Sequence[Record], density: str | None) -> tuple[str, str]:
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


def table(frame: pd.DataFrame, *, group: str | None, density: str | None, measure: str) -> pd.DataFrame:
    """Return losses, time and steps trained, quality, and seconds to dense's quality of each record as text.

    `group` and `density` are labels, such as "5 %"; `group` None is the largest; `measure` is unused.
    """
    rows = style.at_density(style.pick(frame, group), density)
    reached = {id(one.row): one.reached for one in trained_records(rows)} if quality_target(rows) else {}
    return pd.DataFrame([_described(row) | _reached(row, reached) | {"result": style.result_of(row)} for row in rows])


def _reached(row: Record, reached: dict[int, float | None]) -> dict[str, str]:
    """Return {"to dense's quality": text}; {} if dense sets no target, "never" if it is not reached."""
    seconds = reached.get(id(row))
    text = "" if id(row) not in reached else "never" if seconds is None else format_seconds(seconds, 2)
    return {"to dense's quality": text} if reached else {}


def _described(row: Record) -> dict[str, str]:
    """Return configuration, losses, time and steps of training, and quality of a record as texts, by column."""
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
    return known | {row["quality_name"] or "quality": shown(row["quality"])}


register_chart(
    __name__,
    "Loss and quality against training time",
    (
        style.group_control(),
        style.density_control(),
        Control("measure", "training loss, or a measure of quality on held-out rows", _measures, lambda _: "loss"),
    ),
)
