"""Measurements and predictions of training on several machines: the newest rows of the newest machine, by kind."""

from typing import NamedTuple

import pandas as pd

from benchmarks.analysis.bench import PerformanceTarget
from kernels.registry import format_size
from workbench.analysis.configurations import Record, records

MOST_RATIO = 1.1
"""Wanted of the bytes of a step, over those of numbers and values of the rows that it touches."""
MOST_TABLES_APART = 1.001
"""Between the bytes of a step on tables of different sizes."""


class Steps(NamedTuple):
    """Times of a step, by rising number of machines: predicted for machines, predicted for processes here, measured."""

    machines: list[Record]
    here: list[Record]
    measured: list[Record]

    @property
    def ratios(self) -> list[tuple[int, float]]:
        """(processes, measured / predicted step time) for each measured count of processes with a prediction."""
        known = {row["machines"]: row["seconds_step"] for row in self.here}
        both = [row for row in self.measured if row["machines"] in known]
        return [(row["machines"], row["seconds_step"] / known[row["machines"]]) for row in both]


def newest_records(frame: pd.DataFrame, part: str = "") -> list[Record]:
    """Return the newest record of each name (`what`) on the machine of the last record; of one `part` if given.

    `frame` holds records of `tables.CLUSTER`, in the order written.
    """
    rows = records(frame)
    of_machine = (row for row in rows if row["machine"] == rows[-1]["machine"])
    return [row for row in {row["what"]: row for row in of_machine}.values() if part in ("", row["part"])]


def steps_of(frame: pd.DataFrame) -> Steps:
    """Return the newest step times of the sizes measured last, ascending in machines, split by how they are known.

    `frame` holds records of `tables.CLUSTER`, in the order written.
    """
    known = [row for row in newest_records(frame, "step") if row["status"] == "ok"]
    sizes = ("batch_rows", "features", "width")
    same = [row for row in known if all(row[name] == known[-1][name] for name in sizes)]
    ordered = sorted(same, key=lambda row: row["machines"])
    guessed = [row for row in ordered if not row["is_measured"]]
    machines, here = ([row for row in guessed if (row["cores"] is None) == is_apart] for is_apart in (True, False))
    return Steps(machines, here, [row for row in ordered if row["is_measured"]])


def list_targets(frame: pd.DataFrame) -> list[PerformanceTarget]:
    """Return the targets on bytes moved and on memory, with what was reached, from distributed-training records."""
    return [
        *_byte_targets(newest_records(frame, "bytes")),
        *(_memory_targets(row) for row in newest_records(frame, "rows")),
    ]


def _byte_targets(rows: list[Record]) -> list[PerformanceTarget]:
    """Return the targets on bytes moved in a step: one per table size, and one across sizes if there are several.

    `rows` are the newest records of the part "bytes".
    """
    found = [
        PerformanceTarget(
            f"bytes of a step, table of {row['features']:,} rows",
            f"<= {MOST_RATIO:g} of numbers and values",
            f"{row['ratio']:.3f}",
            row["ratio"] <= MOST_RATIO,
        )
        for row in rows
    ]
    if len(rows) > 1:
        each = [row["bytes_moved"] / row["touched"] for row in rows]
        apart = max(each) / min(each)
        text = "bytes of a touched row, largest over smallest of these tables"
        found.append(PerformanceTarget(text, f"<= {MOST_TABLES_APART:g}", f"{apart:.5f}", apart <= MOST_TABLES_APART))
    return found


def _memory_targets(row: Record) -> PerformanceTarget:
    """Return the target on the memory of one run under a limit.

    Rows that are streamed have to stay below the limit; with all rows held, the run has to be refused memory.
    """
    mebibytes = {name: format_size(row[name]) for name in ("bytes_limit", "bytes_resident") if row[name] is not None}
    if row["is_held"]:
        text = "refused memory" if row["status"] == "memory" else "it had memory enough, so the limit is none"
        return PerformanceTarget("the same with all rows held", "refused memory", text, row["status"] == "memory")
    if row["status"] != "ok":
        return PerformanceTarget(
            "rows that are streamed", f"within {mebibytes['bytes_limit']} a process", row["reason"], False
        )
    return PerformanceTarget(
        f"{row['rows_trained']:,} rows that are streamed",
        f"within {mebibytes['bytes_limit']} a process",
        f"{mebibytes['bytes_resident']} resident at most",
        row["bytes_resident"] <= row["bytes_limit"],
    )
