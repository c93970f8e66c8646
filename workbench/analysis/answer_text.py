"""The words of an answer: training time first, then memory, the step behind it, caveats, and what the names mean.

`AnswerText` has the parts; the templates `answer.txt.jinja` and `answer.html.jinja` beside this module arrange them,
one for text (terminal, Markdown, `str`) and one for HTML (notebook, panel, report).
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import jinja2
import pandas as pd

from workbench.analysis import configurations, formatting, outliers
from workbench.analysis.answers import (
    MEMORY,
    NO_ANSWER,
    Answer,
    Shown,
    answer_of,
    answered_groups,
    letters_of,
    seconds_a_row,
)
from workbench.analysis.compare import Contest, contests_of_group, trained_worse
from workbench.analysis.configurations import Group, Record, line_key
from workbench.analysis.estimates import TIME
from workbench.analysis.formatting import (
    format_bytes,
    format_count,
    format_density,
    format_measured,
    format_measured_quantity,
    format_number,
    format_seconds,
    join_items,
    name_configuration,
)
from workbench.analysis.verdict_text import (
    contest_clause,
    failure_reason,
    format_probability,
    format_ratio,
    missing_reason,
    verdict_with_factor,
)

SAMPLED = "batch from csr"
"""Operation by which data kept as CSR become dense batches, as the candidate's name says."""
LEAST_DENSE = 1_000_000
"""Bytes of a dense array from which on it is worth a caveat."""
MOST_NAMED = 3
"""Densities that a sentence names; more are counted."""


@dataclass(frozen=True)
class DensityLine:
    """One density: its label, the best of each side with its letter, and the verdicts in time and memory.

    `ratios` are the intervals of dense / sparse of both measures, short as for a column of a table.
    """

    density: str
    sparse: str
    dense: str
    time: str
    memory: str
    ratios: tuple[str, str]


@dataclass(frozen=True)
class AnswerText:
    """The words of an answer, in reading order. `names` and `legend` explain the letters and the names."""

    advice: str
    time: str = ""
    memory: str = ""
    step: str = ""
    break_even: str = ""
    caveats: tuple[str, ...] = ()
    densities: tuple[DensityLine, ...] = ()
    names: tuple[tuple[str, str], ...] = ()
    legend: tuple[tuple[str, str], ...] = ()

    @property
    def headline(self) -> str:
        """Advice and training time in one line."""
        return f"{self.advice}. {self.time}".strip()

    @property
    def html(self) -> str:
        """The answer as HTML, all texts escaped."""
        return _template("answer.html.jinja").render(text=self)

    def __str__(self) -> str:
        """Return the answer as plain text."""
        return _template("answer.txt.jinja").render(text=self).strip()


@cache
def _template(name: str) -> jinja2.Template:
    """Return a template of this folder; texts are escaped if it is HTML."""
    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    environment = jinja2.Environment(loader=loader, autoescape=name.endswith("html.jinja"))
    environment.trim_blocks = environment.lstrip_blocks = True
    return environment.get_template(name)


def answer_text(frame: pd.DataFrame, shown: Shown = None, epochs: int | None = None) -> AnswerText:
    """Return the words of the answer of trial records; without records they say so.

    Caveats are about the groups that have a configuration in `shown`. `epochs` are those that times are said for, by
    default those of the records, else 20.
    """
    pooled = configurations.pool_rounds(frame)
    answer = answer_of(pooled)
    if answer is not None and epochs:
        answer = replace(answer, epochs=epochs)
    return text_of(answer, answered_groups(pooled, shown))


def text_of(answer: Answer | None, groups: Sequence[Group]) -> AnswerText:
    """Return the words of an answer; `groups` are those of its records that are shown."""
    if answer is None or answer is NO_ANSWER:
        return AnswerText("There is no answer yet", "Nothing was measured.")
    rows = [row for group in groups for row in group.rows]
    caveats = (*_caveats_of(answer, groups), *_warnings(answer.group, rows), *_failures(rows))
    lines = tuple(_lines(answer.group)) if len(configurations.by_density(answer.group.rows)) > 1 else ()
    letters = letters_of(answer.group)
    named = {letters[line_key(row)]: row for row in answer.group.rows}
    used = " ".join([_step(answer), *(f"{line.sparse} {line.dense}" for line in lines), *caveats]).split()
    shown = {letter: row for letter, row in named.items() if letter in {word.strip("(),.;:") for word in used}}
    names = tuple((letter, name_configuration(shown[letter])) for letter in sorted(shown, key=_order_of_letter))
    return AnswerText(
        _advice(answer),
        _time(answer),
        _memory(answer),
        _step(answer),
        _break_even(answer),
        caveats,
        lines,
        names,
        tuple(formatting.legend(shown.values())),
    )


def _order_of_letter(letter: str) -> tuple[bool, int]:
    """Return the sort key of a letter: sparse ones first, then by number."""
    return letter[0] == "D", int(letter[1:])


def _advice(answer: Answer) -> str:
    """Return what to do, worded by its certainty: "Go sparse", "Probably sparse (88 %)", ..."""
    time = answer.time
    if answer.best is None and time.verdict not in ("sparse", "dense"):
        return "There is no answer"
    if time.verdict in ("sparse", "dense"):
        return "Go sparse" if time.verdict == "sparse" else "Stay dense"
    side = "dense" if answer.best is None or configurations.is_dense(answer.best) else "sparse"
    if time.likely and time.ratio:
        return f"Probably {time.likely} ({format_probability(time.ratio.probability)})"
    if time.ratio is None:
        return "There is no comparison"
    return f"Either side will do, take {side}" if time.verdict == "level" else f"Not decided, take {side} for now"


def _time(answer: Answer) -> str:
    """Return the sentence with the training time of both sides, or why a side has none."""
    known = {side: format_measured(*seconds[:3], format_seconds) for side, seconds in answer.seconds.items() if seconds}
    what = f"{format_count(answer.epochs, 'epoch')} of the data take "
    contest = answer.time
    if contest.ratio is None:
        reasons = list(dict.fromkeys(row["reason"].rstrip(".") for row in answer.rows if row["reason"]))
        lost = {"sparse": contest.dense, "dense": contest.sparse}.get(contest.verdict)
        if lost is not None:
            other = "dense" if contest.verdict == "sparse" else "sparse"
            took = f"{what}{known[contest.verdict]} {contest.verdict}; " if contest.verdict in known else ""
            return formatting.capitalized(f"{took}{other} does not run: {failure_reason(lost)}.")
        return formatting.capitalized(f"{'. '.join(reasons) or contest.why or 'nothing was measured'}.")
    times = ", ".join(f"{text} {side}" for side, text in known.items())
    clause = contest_clause(contest, "faster")
    return f"{what}{times} ({clause})." if times else f"{formatting.capitalized(clause)}."


def _memory(answer: Answer) -> str:
    """Return the sentence with the peak memory of both sides; "" if neither is known."""
    contest = answer.memory
    sides = (("sparse", contest.sparse), ("dense", contest.dense))
    sizes = [f"{text} {side}" for side, row in sides if row and (text := format_measured_quantity(row, MEMORY))]
    clause = f" ({verdict_with_factor(contest, MEMORY)})" if contest.ratio and contest.verdict != "inconclusive" else ""
    on = " on the device" if (answer.best or {}).get("device") == "cuda" else ""
    return f"Peak memory{on}: {', '.join(sizes)}{clause}." if sizes else ""


def _step(answer: Answer) -> str:
    """Return the sentence with the time a step of both sides by their letters, the density and the rounds."""
    letters, contest = letters_of(answer.group), answer.time
    sides = [row for row in (contest.sparse, contest.dense) if row is not None]
    times = [f"{letters[line_key(row)]} {text}" for row in sides if (text := format_measured_quantity(row, TIME))]
    if not times:
        return ""
    own = "the data's density, " if answer.asked is None else ""
    where = f" at {own}{format_density(contest.density)}" if contest.density else ""
    ratio, rounds = contest.ratio, ""
    if ratio is not None and ratio.rounds:
        many = "" if ratio.disturbed == ratio.rounds else f"{ratio.disturbed} of them "
        busy = f", {many}while other programs ran" if ratio.disturbed else ""
        rounds = f"; {format_count(ratio.rounds, 'round')}{busy}"
    return f"A step of {format_count(sides[0]['batch_rows'], 'row')}{where}: {', '.join(times)}{rounds}."


def _break_even(answer: Answer) -> str:
    """Return the sentence with the density at which the faster side changes; "" if none was found."""
    even = answer.break_even
    return f"The faster side changes {even.place}." if even is not None and even.place else ""


def _lines(group: Group) -> Iterator[DensityLine]:
    """Yield a line for each density of a group, ascending."""
    memory = {one.asked_density: one for one in contests_of_group(group, MEMORY)}
    for time in contests_of_group(group, TIME):
        row = time.sparse or time.dense
        label = configurations.density_label(row) if row else configurations.NATURAL
        if row is not None and row["density"] is None and time.density:
            label = f"{format_density(time.density)}, {label}"
        other = memory.get(time.asked_density)
        yield DensityLine(
            label,
            _cell(group, time, time.sparse),
            _cell(group, time, time.dense),
            verdict_with_factor(time, TIME),
            verdict_with_factor(other, MEMORY) if other else "",
            (format_ratio(time), format_ratio(other) if other else ""),
        )


def _cell(group: Group, contest: Contest, row: Record | None) -> str:
    """Return the letter of a record with its time a step, or why it has none; a tick if it wins."""
    if row is None:
        return ""
    wins = {"sparse": contest.sparse, "dense": contest.dense}.get(contest.verdict) is row
    text = format_measured_quantity(row, TIME) if row["status"] in configurations.NUMBERED else missing_reason(row)
    return f"{'✓ ' if wins else ''}{letters_of(group)[line_key(row)]} {text}".strip()


def _caveats_of(answer: Answer, groups: Sequence[Group]) -> Iterator[str]:
    """Yield what to know of the answer: how to decide it, a batch that was chosen by time alone, other groups."""
    if answer.time.verdict == "inconclusive" and answer.time.remedy:
        yield f"To decide it: {answer.time.remedy}."
    batches = {row["batch_rows"] for row in answer.leaders}
    if answer.best is not None and answer.best["batch_rows"] > min(batches):
        yield (
            f"A batch of {answer.best['batch_rows']:,} rows is faster, and has fewer updates an epoch, which trains "
            f"another model; --batch-rows {min(batches)} keeps to the smaller one."
        )
    elif answer.best is not None and answer.best is not (faster := min(answer.leaders, key=seconds_a_row)):
        rows, own = faster["batch_rows"], answer.best["batch_rows"]
        what = f"A batch of {rows:,} rows" if rows != own else f"Training on {faster['device']}"
        more = f"; one of {own:,} rows has more updates an epoch" if rows > own else ""
        yield f"{what} is faster by less than a quarter{more}."
    if len(groups) > 1:
        yield f"There are {len(groups)} groups of settings. The answer holds for this one: {answer.group.label}."


def _warnings(group: Group, rows: Sequence[Record]) -> Iterator[str]:
    """Yield the caveats: worse lazy models, densified operations, hashed columns, a machine that was not quiet.

    `group` is that of the answer, `rows` are the records of all groups.
    """
    letters = letters_of(group)
    worse: dict[tuple, list[tuple[Record, Record]]] = {}
    for lazy, fair in trained_worse(group.rows):
        worse.setdefault(line_key(lazy), []).append((lazy, fair))
    for line, pairs in worse.items():
        at = [format_density(configurations.density_of(lazy) or 0.0) for lazy, _ in pairs]
        where = join_items(at) if len(at) <= MOST_NAMED else f"{len(at)} densities"
        yield f"{letters[line]} trained a worse model than dense at {where} ({_ends(*pairs[0])}), so it may not win."
    sizes: dict[tuple[str, str], int] = {}
    for row in group.rows:
        for one in row["densified"] or ():
            if one.get("op") != SAMPLED and (row.get("storage") or "same") == "same":
                key = letters[line_key(row)], str(one.get("op"))
                sizes[key] = max(sizes.get(key, 0), one.get("bytes") or 0)
    for (letter, op), size in sizes.items():
        if size < LEAST_DENSE:
            continue
        yield f"{letter} makes a dense array of {format_bytes(size)}: {op.replace('standard update', 'dense update')}."
    yield from dict.fromkeys(row["hashed"] for row in rows if row.get("hashed"))
    kinds = Counter(kind for row in rows for kind in outliers.machine_state(row) if kind != outliers.OTHERS)
    if kinds:
        yield f"The machine had {join_items(kinds)} during the trials; the records say how much."
    if lost := Counter(name for row in rows for name in row["not_finite"] or ()):
        yield f"Values that were not finite are missing: {join_items(lost)}."


def _ends(row: Record, fair: Record) -> str:
    """Return "loss 0.31 instead of 0.28, AUC 0.8 instead of 0.82": final values of `row` against those of `fair`."""
    pairs = (("loss", "loss_last"), (row["quality_name"] or "quality", "quality"))
    known = [(name, row[column], fair[column]) for name, column in pairs]
    return ", ".join(
        f"{name} {format_number(mine)} instead of {format_number(other)}"
        for name, mine, other in known
        if mine is not None and other is not None
    )


def _failures(rows: Sequence[Record]) -> Iterator[str]:
    """Yield a sentence with the records without a result by status, each with a reason; none if all have one.

    Those that there was too little time for have other sentences.
    """
    lost: dict[str, list[str]] = {}
    cut = [row for row in rows if row["status"] == "timeout" and row["seconds_step"]]
    if cut:
        yield (
            f"{len(cut)} of {format_count(len(rows), 'configuration')} had too little time for all samples; those "
            f"taken count ({cut[0]['reason'].rstrip('.')})."
        )
    for row in rows:
        if row["status"] not in configurations.NUMBERED and row not in cut:
            lost.setdefault(row["status"], []).append((row["reason"] or "no reason given").rstrip("."))
    if unmeasured := sum(len(lost.pop(status, ())) for status in (configurations.UNMEASURED, "stopped")):
        yield f"There was no time to measure {unmeasured} of {format_count(len(rows), 'configuration')}."
    if lost:
        each = "; ".join(f"{len(reasons)} {status} ({reasons[0]})" for status, reasons in lost.items())
        count = sum(map(len, lost.values()))
        has = "has" if count == 1 else "have"
        yield f"{count} of {format_count(len(rows), 'configuration')} {has} no result: {each}."
