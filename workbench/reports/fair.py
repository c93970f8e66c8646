"""The page of both sides beside the best independent ones: configurations, goals, and the shift of the break-even."""

from collections.abc import Sequence
from pathlib import Path

from workbench import store
from workbench.analysis import fair, formatting
from workbench.analysis.fair import Compared, Ratio, Record, Side
from workbench.reports import page
from workbench.reports.captions import folder_to_type, written

FILE = "bench-fair.md"
COLUMNS = (
    *("configuration", "project dense", "best independent dense", "dense ratio"),
    *("project sparse", "best independent sparse", "sparse ratio"),
)
OUTCOME = {True: "met", False: "missed", None: "not measured"}


def write(folder: str | Path, command: str = "") -> Path:
    """Write the page beside the records of a folder; returns its path."""
    folder = Path(folder)
    found = fair.compare_all([written(record) for record in store.FAIR.read(folder)])
    wanted = fair.list_targets(found)
    met = [goal.met for goal in wanted if goal.met is not None]
    content = {
        "verdict": f"{sum(met)} of {len(met)} goals that were measured are met.",
        "goals": page.table_of(
            ("goal", "wanted", "measured", "outcome"), ([g.what, g.wanted, g.measured, OUTCOME[g.met]] for g in wanted)
        ),
        "configurations": page.table_of(COLUMNS, map(line, found)),
        "apart": page.table_of(COLUMNS, map(line, fair.separate_configurations(found))),
        "summary": fair.summary(found),
        "shifts": page.table_of(
            ("family", "break-even measured", "each side at its best", "by"),
            ([fair.family_text(s.family), *_moved(s)] for s in fair.breakeven_shifts(found)),
        ),
        "left": page.table_of(
            ("candidate", "status", "reason, of the first", "configurations"),
            ([name, status, reason, str(count)] for name, status, reason, count in fair.list_untimed(found)),
        ),
        "notes": page.table_of(("candidate", "what differs"), sorted(notes(found).items())),
        "method": method(found),
        "machine": page.table_of(("what", "value"), page.flat(written(page.record(folder / "machine.json")))),
        "command": command or f"workbench bench fair --results {folder_to_type(folder)}",
    }
    path = folder / FILE
    path.write_text(page.templates().get_template("fair.md.jinja").render(content), "utf-8")
    return path


def _moved(shift: fair.Shift) -> list[str]:
    """Return the break-even before and after, and how it was found, as cells."""
    how = "between densities measured" if shift.is_between else "slope of all configurations"
    return [fair.format_breakeven(shift.before), fair.format_breakeven(shift.after), how]


def line(compared: Compared) -> list[str]:
    """Return a configuration in the table.

    Of each kind the project's best, the best independent one, and their ratio.
    """
    texts = [[_fastest(side.project), _fastest(side.independent), ratio_text(side.ratio)] for side in _sides(compared)]
    return [compared.name, *texts[0], *texts[1]]


def _sides(compared: Compared) -> list[Side]:
    """Return the sides of a comparison, in the order of `KINDS`."""
    return [compared.sides[kind] for kind in fair.KINDS]


def _fastest(record: Record | None) -> str:
    """Return time and name of the fastest candidate, or "not timed"."""
    if record is None:
        return "not timed"
    return f"{formatting.format_seconds(record['seconds'])}, {record['candidate'].removeprefix('project, ')}"


def ratio_text(ratio: Ratio | None) -> str:
    """Return a ratio with the least and the most of its rounds.

    >>> ratio_text(Ratio(0.841, 0.8, 0.9)), ratio_text(None)
    ('0.84 (0.8 to 0.9)', '')
    """
    if ratio is None:
        return ""
    return (
        f"{formatting.format_number(ratio.value, 2)} ({formatting.format_number(ratio.low, 2)} to "
        f"{formatting.format_number(ratio.high, 2)})"
    )


def notes(found: Sequence[Compared]) -> dict[str, str]:
    """Return the differences in the work of candidates that were timed, by name."""
    records = [record for one in found for record in one.records if record["status"] == "ok" and record["note"]]
    return {record["candidate"]: record["note"] for record in records}


def method(found: Sequence[Compared]) -> str:
    """Return sizes, rounds, threads and other programs, in words."""
    records = [record for one in found for record in one.records if record["status"] == "ok"]
    if not records:
        return "No candidate was timed."
    sizes = [4 * record["rows"] * record["features"] for record in records]
    rounds = max(len(record["samples"]) for record in records)
    threads = sorted({record["threads"] for record in records})
    busy = max(record["busy_others"] or 0.0 for record in records)
    error = max(record["error"] for record in records)
    return (
        f"{len(found)} configurations; X has {formatting.format_bytes(min(sizes))} to "
        f"{formatting.format_bytes(max(sizes))} dense. "
        f"{rounds} rounds on {', '.join(map(str, threads))} threads; a candidate far behind the fastest of its side "
        f"has fewer. The largest error of weights and losses is {error:.1e}. Other programs took up to "
        f"{100 * busy:.0f} % of the cores."
    )
