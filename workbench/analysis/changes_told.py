"""Changes between two runs, in sentences and tables: the answer first, then the drift and what could be seen."""

import math
from collections.abc import Iterator, Sequence

from workbench.analysis import words
from workbench.analysis.changes import Change, Changes, count, worst
from workbench.measure.rounds import LOOKS

NAMED = 5
"""Cells that a sentence names."""
LARGE = 1.1
"""A drift from which on a sentence warns of it."""
COLUMNS = ("cell", "verdict", "after / before", "could have shown from")


def headline(changes: Changes) -> str:
    """The answer: what is slower, by how much, and how many cells are what."""
    slower, kernels = worst(changes.cells), worst(changes.kernels)
    if not changes.cells:
        return "Nothing can be compared: no cell has a time in both runs that was measured anew."
    parts = [f"Slower: the kernel {one.name}, {times(one)} as long, {_seen(one)}." for one in kernels[:NAMED]]
    if slower:
        more = f"; the most: {slower[0].name}, {times(slower[0])} as long"
        parts.append(f"{words.plural(len(slower), 'cell')} of {len(changes.cells)} {_is(slower)} slower{more}.")
    if not parts:
        parts.append("Nothing is slower.")
    counts = count(changes.cells)
    each = words.join(f"{number} {name}" for name, number in counts.items() if number)
    return " ".join([*parts, f"Of {words.plural(len(changes.cells), 'cell')}: {each}."])


def sentences(changes: Changes) -> Iterator[str]:
    """The grounds: the drift, what is faster, memory, what is lost, what could have been seen, what was left out."""
    yield _drift(changes)
    for one in worst(changes.kernels, "faster")[:NAMED]:
        yield f"Faster: the kernel {one.name}, {times(one)} as long, {_seen(one)}."
    yield from _memory(changes)
    yield from _lost(changes)
    if changes.cells:
        yield _visible(changes)
    yield from _left_out(changes)


def table(changes: Sequence[Change]) -> list[list[str]]:
    """A row a cell or kernel, as COLUMNS; what is slower first, then what is ambiguous."""
    order = ("slower", "faster", "ambiguous", "same")
    ordered = sorted(changes, key=lambda one: (order.index(one.verdict), -abs(math.log(one.ratio.value))))
    return [[one.name, one.verdict, times(one), seen_from(one)] for one in ordered]


def times(one: Change) -> str:
    """Ratio of a change in words, with both ends where the interval is wide."""
    return words.times(one.ratio) if one.ratio.rounds >= LOOKS[0] else f"about {words.number(one.ratio.value, 2)} times"


def _is(some: Sequence[Change]) -> str:
    return "is" if len(some) == 1 else "are"


def _seen(one: Change) -> str:
    return f"over {words.plural(len(one.cells), 'cell')} together" if len(one.cells) > 1 else f"in {one.cells[0]}"


def seen_from(one: Change) -> str:
    """The smallest slow-down that could have been shown."""
    return f"{words.number(one.visible, 2)} times" if math.isfinite(one.visible) else "fewer than four rounds"


def _drift(changes: Changes) -> str:
    drift = changes.drift
    all_of_it = f"{words.number(drift.factor, 3)} times as long"
    machine = " That is a change of the machine, or of what no key tells, and is not looked for in the code."
    warns = machine if abs(drift.value) > math.log(LARGE) else ""
    if drift.kind == "cells":
        by = f"{words.plural(drift.sentinels, 'cell')} of the same code in both runs"
        return f"Drift: {by} took {all_of_it} in the second, at the median, and that is taken out.{warns}"
    if drift.kind == "work":
        return f"Drift: the fixed work beside each trial took {all_of_it} in the second run; that is taken out.{warns}"
    if drift.kind == "machines":
        first, second = changes.pairs.machines
        return f"The machines differ, {first} and {second}: what is compared is both, machine and code."
    return "Drift: nothing tells it, so each interval is wider by what whole runs of one machine have differed by."


def _memory(changes: Changes) -> Iterator[str]:
    for which, word in (("slower", "more"), ("faster", "less")):
        some = worst(changes.memory, which)
        if some:
            first = some[0]
            yield (
                f"Memory: {words.plural(len(some), 'cell')} of {len(changes.memory)} "
                f"{'takes' if len(some) == 1 else 'take'} {word}; the most: {first.name}, {times(first)} as much."
            )


def _lost(changes: Changes) -> Iterator[str]:
    lost = changes.pairs.lost
    for pair in lost[:NAMED]:
        reason = (pair.after["reason"] or "no reason given").rstrip(".")
        yield f"No result any more: {pair.name}, {pair.after['status']} ({reason})."
    if len(lost) > NAMED:
        yield f"{len(lost) - NAMED} more cells have no result any more."


def _visible(changes: Changes) -> str:
    """The smallest slow-down that could have been shown: by cell, and over the cells of a kernel together."""
    by_cell = sorted(one.visible for one in changes.cells)
    text = f"Could have been shown: in a cell alone slow-downs {_span(by_cell)}"
    by_kernel = sorted(changes.kernels, key=lambda one: one.visible)
    if not by_kernel:
        return f"{text}."
    return f"{text}; over all cells of a kernel together {_span([one.visible for one in by_kernel])}."


def _span(visible: Sequence[float]) -> str:
    known = [one for one in visible if math.isfinite(one)]
    if not known:
        return "of no size, from fewer than four rounds"
    least, middle, most = (words.number(known[place], 2) for place in (0, len(known) // 2, -1))
    return f"from {middle} times on" if least == most else f"from {middle} times on ({least} to {most})"


def _left_out(changes: Changes) -> Iterator[str]:
    pairs = changes.pairs
    if pairs.again:
        yield f"{words.plural(pairs.again, 'cell')} {'has' if pairs.again == 1 else 'have'} the same rows in both runs."
    if few := sum(one.ratio.rounds < LOOKS[0] for one in changes.cells):
        yield f"{words.plural(few, 'cell')} {'has' if few == 1 else 'have'} fewer than four rounds of a run: ambiguous."
    disturbed = len(pairs.numbered) - len(pairs.timed)
    if disturbed:
        yield f"{words.plural(disturbed, 'cell')} never timed undisturbed in one of the runs."
    if pairs.only_before or pairs.only_after:
        yield f"Without a partner: {pairs.only_before} of the first run, {pairs.only_after} of the second."
