"""Method of the numbers of a report, for readers who want to judge them."""

from collections.abc import Iterator, Sequence

from workbench.analysis import cells, words
from workbench.analysis.compare import LEVEL, LOOKS
from workbench.analysis.intervals import MEMORY_SHARE

ROUNDS = (
    "Each trial ran in a fresh process of its own. The output of the timed call was checked against a float64 "
    "reference first; compiling and warm-up are in no time.",
    "A round measures all contenders of a comparison one after the other, in an order that turns from round to "
    "round, so that what slows the machine for a while slows neighbours alike; the other comparisons of the run "
    "come between two rounds. A trial gives one number, the lower quartile of its samples.",
    "A ratio comes from the rounds that both sides have: the mean of log(dense / sparse), and as half width of "
    "its interval a quantile of Student's t times the standard deviation between rounds, times sqrt(1 / rounds + "
    "1 / 16), since rounds of one run share some of their noise. The quantile is 99 %, and higher where the best "
    "of more than two was chosen. Runs are combined by their ratios; seconds of different runs are never "
    "compared.",
    f"A decision is looked for after {', '.join(map(str, LOOKS[:-1]))} and {LOOKS[-1]} rounds, never before. A "
    "side is better where the interval of the ratio leaves out 1. Where it holds 1 and its ends are less than a "
    f"factor of {LEVEL:g} apart the two are level, else it is undecided. All looks together err in about 5 % of "
    "comparisons.",
    "A trial beside which other programs took more than 10 % of the cores is disturbed: it is measured again at "
    "once, up to three times, and after that its round does not count for time. Where too few rounds are left the "
    "answer is undecided: other programs were at work.",
    "Seconds are the mean of the rounds of one run with its 95 % interval, and hold for that run alone. Memory is "
    f"the median of the peaks of all rounds, to 1 MiB, {100 * MEMORY_SHARE:g} % or half their range, whichever is "
    "most; other programs do not change it. Every number has the digits that its interval allows.",
    "A break-even lies between the last density at which sparse is better and the first at which dense is; its "
    "interval is where the interval of the ratio, linear in the logarithms between two densities, holds 1.",
)
"""What holds for all reports."""


def sentences(rows: Sequence[cells.Row]) -> Iterator[str]:
    """The method, and its figures in these rows."""
    yield from ROUNDS
    ok = [row for row in rows if row["status"] == "ok"]
    yield from _baseline(rows)
    if ok:
        rounds, samples = [row["rounds"] for row in ok], [len(row["samples"] or ()) for row in ok]
        yield f"There are {_span(rounds, 'round')} a cell, and {_span(samples, 'sample')}."
    if busy := sum(row["rounds_disturbed"] for row in rows):
        yield f"Disturbed and left out of all times: {words.plural(busy, 'trial')}."
    if put_right := dict.fromkeys(f"{name} = {value}" for row in ok for name, value in (row["mended"] or {}).items()):
        yield f"Kept from the trials, since it would have distorted them: {words.join(put_right)}."
    checked = [row for row in ok if row["error"] is not None and row["error_allowed"]]
    if checked:
        worst = max(checked, key=lambda row: row["error"] / row["error_allowed"])
        errors = f"{worst['error']:.1e}; {worst['error_allowed']:.1e} is allowed there"
        yield f"The largest relative error against the reference is {errors}."


def _baseline(rows: Sequence[cells.Row]) -> Iterator[str]:
    """Candidates of dense, the best of which is what sparse is compared with."""
    names = list(dict.fromkeys(words.line(line[0]) for line in cells.dense_lines(rows).values()))
    if not names:
        return
    known = f"{len(names)} candidates: {'; '.join(names)}" if len(names) > 1 else f"one candidate: {names[0]}"
    devices = {row["device"] for row in rows if cells.is_dense(row)}
    blas = " and ".join(name for device, name in (("cpu", "BLAS"), ("cuda", "cuBLAS")) if device in devices)
    best = "The best of them at each density" if len(names) > 1 else "It"
    yield (
        f"Dense trains on dense batches of the same rows, with the same batches, model and optimizer. It has {known}. "
        f"{best} is what sparse is compared with. Its products are those of {blas}, but for what an epoch in one call "
        "computes by its own loops."
    )


def _span(counts: Sequence[int], noun: str) -> str:
    """Count of things, from the least to the most."""
    least, most = min(counts), max(counts)
    return words.plural(most, noun) if least == most else f"{least} to {words.plural(most, noun)}"
