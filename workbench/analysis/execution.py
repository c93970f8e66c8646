"""Description of how a side was held and executed, and the bound of what an unequal execution could change.

Only rows are read: `describe` tells of one, `describe_sides` of both sides of a contest, `describe_inequality` of a
contest in time one side of which ran a step at a time and the other in one call.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from workbench.analysis import formatting
from workbench.analysis.compare import Contest, ratio_between
from workbench.analysis.configurations import HELD, LINE, NUMBERED, is_dense, storage_of
from workbench.measure.posterior import EQUIVALENCE_MARGIN, Ratio

Record = Mapping[str, Any]

UPDATES = {"lazy": "lazy update", "exact": "exact update", "standard": "update of all rows"}
GRADIENTS = {
    "fused": "gradient fused with the update",
    "row_sparse": "gradient of the active rows",
    "dense": "dense gradient",
}
ENGINES = {
    ("dense", "cpu"): "BLAS",
    ("dense", "cuda"): "cuBLAS",
    ("vendor", "cpu"): "SciPy",
    ("vendor", "cuda"): "cuSPARSE",
}
LAUNCHES = {
    "kernels": "a step at a time",
    "graph": "each step as one CUDA graph",
    "epoch": "the epoch in one compiled call",
    "dual": "dual ascent, the epoch in one compiled call",
}
RANKS = {"kernels": 0, "graph": 1, "epoch": 2, "dual": 2}
"""Executions, by how little runs between two steps: of equal rank are equal executions."""
RUNS = ("a step at a time", "each step as one graph", "in one call")
"""Executions in a sentence, by rank."""
SAVED = ("", "one graph a step", "one call")
"""What an execution does instead of steps by themselves, by rank."""
AROUND = ("slice", "convert", "transfer", "plan", "wait")
"""Phases of a step outside of forward, loss, gradient and update."""
KERNELS = ("forward", "loss", "gradient", "update")


def describe(row: Record) -> str:
    """Say how the data of a row was held, and how its steps were executed.

    >>> describe({"format": "csr", "engine": "ours", "gradient": "row_sparse", "update": "lazy", "launch": "epoch",
    ...           "threads": 2, "threads_used": 2})
    'held as CSR, lazy update, the epoch in one compiled call, 2 threads'
    >>> describe({"format": "dense", "engine": "dense", "hold": "csr", "launch": "kernels", "threads": 2})
    'held as CSR and made dense a batch at a time, a step at a time by BLAS, up to 2 threads'
    """
    parts = (
        _storage_text(row),
        *_gradient_and_update_text(row),
        _execution_text(row),
        "batches prepared ahead" if row.get("ahead") else "",
        _location_text(row),
    )
    return ", ".join(filter(None, parts))


def describe_sides(contest: Contest) -> str:
    """Return how the sides of a contest were stored and executed: "Dense: .... Sparse: ...." (the sides that ran)."""
    sides = (("Dense", contest.dense), ("Sparse", contest.sparse))
    return " ".join(f"{name}: {describe(row)}." for name, row in sides if row and row["status"] in NUMBERED)


def describe_contest(contest: Contest, rows: Iterable[Record], measure: str) -> str:
    """Return how both sides of a contest were stored and executed; for a measure in seconds also what is unequal.

    `rows` are the records of the group, of any density.
    """
    unequal = describe_inequality(contest, _records_at_density(contest, rows)) if measure.startswith("seconds") else ""
    return " ".join(filter(None, (describe_sides(contest), unequal)))


def _records_at_density(contest: Contest, rows: Iterable[Record]) -> list[Record]:
    """Return the records with the requested density of the contest; [] if the contest has no record."""
    own = contest.sparse or contest.dense
    return [row for row in rows if own is not None and row["density"] == own["density"]]


def describe_inequality(contest: Contest, rows: Iterable[Record]) -> str:
    """Return how unequally both sides of a contest in time were executed, and what that could change; "" if equally.

    `rows` are all of the density. A side that was also measured with the other side's execution counts as equal. The
    bound is the gain of one call on the other side, if its steps were measured, else the share of its step that the
    slower executed side spends around its kernels.
    """
    if contest.sparse is None or contest.dense is None or contest.ratio is None:
        return ""
    ranks = {"sparse": _rank(contest.sparse), "dense": _rank(contest.dense)}
    if ranks["sparse"] == ranks["dense"]:
        return ""
    slow = min(ranks, key=lambda side: ranks[side])
    fast = "dense" if slow == "sparse" else "sparse"
    rows = list(rows)
    tried = (row for row in rows if row["status"] in NUMBERED and is_dense(row) == (slow == "dense"))
    if any(_rank(row) >= ranks[fast] for row in tried):
        return ""
    said = f"{slow.capitalize()} was run {RUNS[ranks[slow]]}, {fast} {RUNS[ranks[fast]]}"
    if contest.verdict == slow:
        return f"{said}; {slow} wins all the same."
    return f"{said}: {_bound(contest, slow, fast, rows)}."


def _storage_text(row: Record) -> str:
    """Return how a record's data are stored and turned into batches, such as "held as CSR"."""
    if row["format"] != "dense":
        name = "sparse rows" if row["format"] == "row_sparse" else formatting.NAMES.get(row["format"], row["format"])
        return f"held as {name}" if row["format"] == "csr" else f"held as CSR, batches converted to {name}"
    hold = storage_of(row)
    if hold == "csr" or any(one.get("op") == "batch from csr" for one in row.get("densified") or ()):
        return "held as CSR and made dense a batch at a time"
    return "held as a dense array" if hold == HELD else f"held as {hold} and widened a batch at a time"


def _gradient_and_update_text(row: Record) -> tuple[str, ...]:
    """Return (gradient, update) of a sparse training as texts, "" for a part not worth saying; () for a dense one."""
    if row["format"] == "dense":
        return ()
    is_call = RANKS.get(str(row.get("launch")), 0) > 0
    return (
        "" if is_call else GRADIENTS.get(row["gradient"], ""),
        UPDATES.get(row["update"], f"{row['update']} update"),
    )


def _execution_text(row: Record) -> str:
    """Return how a record was executed, such as "a step at a time by BLAS" or "the epoch in one compiled call"."""
    launch = str(row.get("launch") or "kernels")
    by = ENGINES.get((row["engine"], row.get("device") or "cpu"), "")
    return LAUNCHES.get(launch, launch) + (f" by {by}" if by and launch == "kernels" else "")


def _location_text(row: Record) -> str:
    """Return on what a record ran: "on cuda", "2 trainers", "1 thread" or "up to 2 threads"; "" if unknown.

    "up to", since BLAS decides for itself how many threads it uses.
    """
    if (row.get("device") or "cpu") != "cpu":
        return f"on {row['device']}"
    if (trainers := row.get("trainers") or 1) > 1:
        return f"{trainers} trainers"
    allowed, used = row.get("threads"), row.get("threads_used")
    if row.get("serial") or allowed == 1:
        return "1 thread"
    if used is None or (row["format"] == "dense" and _rank(row) == 0):
        return f"up to {formatting.format_count(allowed, 'thread')}" if allowed else ""
    return formatting.format_count(round(used), "thread")


def _rank(row: Record) -> int:
    """Return the rank of a record's execution: 0 a step at a time, 1 a CUDA graph, 2 one call per epoch."""
    return RANKS.get(str(row.get("launch") or "kernels"), 0)


def _bound(contest: Contest, slow: str, fast: str, rows: Sequence[Record]) -> str:
    """Return the clause on how much the slower executed side could gain at most, and the verdict that would follow.

    `slow` and `fast` are "sparse" or "dense"; `rows` are all records of the density.
    """
    sparse, dense, ratio = contest.known
    best, behind = (sparse, dense) if slow == "dense" else (dense, sparse)
    if gain := _gain_of_call(best, rows):
        text = f"{SAVED[_rank(best)]} made {fast} {formatting.format_times(gain)} as fast as {RUNS[_rank(behind)]}"
        return (
            f"{text}; {slow} with the same gain "
            f"{_hypothetical_clause(_hypothetical_ratio(ratio, gain, slow), slow, fast)}"
        )
    share = _share_around(behind)
    if share is None:
        return "what it could change is not known, since the phases of its steps were not timed"
    left = Ratio(1 / (1 - share), 1 / (1 - share), 1 / (1 - share))
    text = f"{formatting.format_density(share, 2)} of a step of {slow} is outside of {formatting.join_items(KERNELS)}"
    return f"{text}; {slow} without that {_hypothetical_clause(_hypothetical_ratio(ratio, left, slow), slow, fast)}"


def _gain_of_call(best: Record, rows: Sequence[Record]) -> Ratio | None:
    """Return the least ratio of step time a step at a time over that of `best`, for configurations alike otherwise.

    None if none of `rows` is alike with a lower execution rank.
    """
    alike = [name for name in LINE if name not in ("launch", "gradient")]
    steps = [row for row in rows if _rank(row) < _rank(best) and all(row[name] == best[name] for name in alike)]
    ratios = [ratio for row in steps if (ratio := ratio_between(row, best, "seconds_step"))]
    return min(ratios, key=lambda ratio: ratio.value, default=None)


def _share_around(row: Record) -> float | None:
    """Return the fraction of a step's phases outside of its kernels; None if no kernel was timed."""
    around, inside = (sum(row.get(f"seconds_{name}") or 0.0 for name in names) for names in (AROUND, KERNELS))
    return around / (around + inside) if inside else None


def _hypothetical_ratio(ratio: Ratio, gain: Ratio, slow: str) -> Ratio:
    """Return the ratio dense / sparse if side `slow` were faster by the factor `gain`."""
    if slow == "dense":
        return ratio._replace(value=ratio.value / gain.value, low=ratio.low / gain.high, high=ratio.high / gain.low)
    return ratio._replace(value=ratio.value * gain.value, low=ratio.low * gain.low, high=ratio.high * gain.high)


def _hypothetical_clause(ratio: Ratio, slow: str, fast: str) -> str:
    """Return how `slow` compares with `fast` at a ratio dense / sparse, as "would be level with dense"."""
    if ratio.low > 1 or ratio.high < 1:
        is_slower = (ratio.low > 1) == (slow == "dense")
        return f"would be {formatting.format_gain(ratio)} {'slower' if is_slower else 'faster'} than {fast}"
    if ratio.high < EQUIVALENCE_MARGIN * ratio.low:
        return f"would be level with {fast}"
    return (
        f"would take {formatting.format_times(ratio if slow == 'dense' else formatting.invert_ratio(ratio))} "
        f"as long as {fast}"
    )
