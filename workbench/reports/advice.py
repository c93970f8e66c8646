"""The page of the suite of advice: what is wanted of it, what came of it, every case beside simpler rules."""

from collections.abc import Sequence
from pathlib import Path

from workbench import store
from workbench.analysis import advice, formatting
from workbench.reports import page
from workbench.reports.captions import folder_to_type, written, written_frame

FILE = "bench-advise.md"
MET = {True: "met", False: "missed", None: ""}


def write(folder: str | Path, command: str = "", predicted: Sequence[str] = ()) -> Path:
    """Write the page beside the rows of a folder; `predicted` says how well a cost model does. Returns its path."""
    folder = Path(folder)
    frame = written_frame(store.ADVICE.frame(store.ADVICE.read(folder)))
    rows, found = advice.newest_good_records(frame), advice.score_rules(frame)
    own = {score.case: score for score in found if score.rule == advice.ADVICE}
    content = {
        "goals": page.table_of(
            ("goal", "wanted", "measured", "outcome"),
            ([goal.what, goal.wanted, goal.measured, MET[goal.met]] for goal in advice.list_targets(frame)),
        ),
        "cases": page.table_of(
            (
                *("case", "density", "features", "dense / sparse", "verdict"),
                *("recommended", "times the least", "trials", "time"),
            ),
            (_of_case(row, own[row["case"]]) for row in rows),
        ),
        "rules": page.table_of(
            ("case", *advice.RULES),
            ([row["case"], *(_told(score) for score in found if score.case == row["case"])] for row in rows),
        ),
        "failed": page.table_of(
            ("case", "why"), ([row["case"], row["reason"]] for row in advice.newest_failed_records(frame))
        ),
        "machine": page.table_of(("what", "value"), page.flat(written(_machine(rows)))),
        "predicted": predicted,
        "command": command or f"workbench bench advise --results {folder_to_type(folder)}",
    }
    path = folder / FILE
    path.write_text(page.templates().get_template("advice.md.jinja").render(content), "utf-8")
    return path


def _of_case(row: advice.Record, score: advice.Score) -> list[str]:
    """Return a case's row in the table."""
    share = f"{row['seconds_advice']:.0f} of {row['seconds_sweep']:.0f} s"
    trials = f"{row['trials_advice']} of {row['trials_sweep']}"
    ratio = advice.dense_over_sparse_seconds(row)
    sides = f"{ratio:.2f}" if ratio is not None else "one side did not run"
    numbers = [formatting.format_density(row["density"]), f"{row['features']:,}", sides, row["verdict"]]
    return [
        row["case"],
        *numbers,
        formatting.name_configuration(row["recommended"]),
        _number(score.whole, 3),
        trials,
        share,
    ]


def _told(score: advice.Score) -> str:
    """Return a rule's two ratios as text, or that it did not run."""
    return "did not run" if score.side is None else f"{_number(score.side, 2)}, {_number(score.whole, 2)}"


def _number(value: float | None, digits: int) -> str:
    """Return a number with fixed decimals, "" for None."""
    return "" if value is None else f"{value:.{digits}f}"


def _machine(rows: list[advice.Record]) -> dict:
    """Return machine and versions of the newest record; {} without records."""
    return {"machine": rows[-1]["machine"], "versions": rows[-1]["versions"]} if rows else {}
