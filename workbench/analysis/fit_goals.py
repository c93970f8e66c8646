"""Goals of trainings to a held-out quality, and how far the choice of the target moves what is found."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from workbench.analysis import words
from workbench.analysis.bench import geometric_mean
from workbench.analysis.fit import Found, share
from workbench.analysis.goal import Goal

BINARY, EACH, TOGETHER, SOFTMAX = "logistic", 5.0, 10.0, 5.0
"""The model of the sets of yes or no, the ratios wanted there of each set and of all, and that wanted of softmax."""

ByTolerance = Mapping[float, Sequence[Found]]
"""The cases at each tolerance, tightest first."""


def goals(found: ByTolerance) -> list[Goal]:
    """Goals of the cases, and what was reached: each is met if it is at every tolerance, so that none decides alone."""
    return [_at_all(found, goal) for goal in (_each_binary, _together_binary, _each_softmax)]


def _at_all(found: ByTolerance, goal: Callable[[Sequence[Found]], Goal]) -> Goal:
    each = {tolerance: goal(cases) for tolerance, cases in found.items()}
    known = {tolerance: one for tolerance, one in each.items() if one.met is not None}
    first = next(iter(each.values()))
    if len(each) == 1 or not known:
        return first
    measured = ". ".join(f"At {share(tolerance)}: {one.measured}" for tolerance, one in each.items())
    return first._replace(measured=measured, met=len(known) == len(each) and all(one.met for one in known.values()))


def _binary(cases: Sequence[Found]) -> list[Found]:
    return [case for case in cases if case.row["model"] == BINARY]


def _each_binary(cases: Sequence[Found]) -> Goal:
    return _each("each set of yes or no, against the fastest rival", _binary(cases), EACH)


def _together_binary(cases: Sequence[Found]) -> Goal:
    return _together("sets of yes or no together, geometric mean", _binary(cases), TOGETHER)


def _each_softmax(cases: Sequence[Found]) -> Goal:
    text = [case for case in cases if case.row["model"] == "softmax" and case.row["dataset"] == "stdlib"]
    return _each("softmax on the standard library, against the fastest rival", text, SOFTMAX)


def _each(what: str, cases: Sequence[Found], wanted: float) -> Goal:
    lost = [case.name for case in cases if not case.fastest("sparse") and case.fastest("rival")]
    known = sorted((case.ratio.value, case.name) for case in cases if case.ratio)
    if lost:
        return Goal(what, f"≥ {wanted:g} x", f"sparse does not reach the target of {words.join(lost)}", False)
    if not known:
        return Goal(what, f"≥ {wanted:g} x", "not measured", None)
    measured = "; ".join(f"{words.number(value)} x {name}" for value, name in known)
    return Goal(what, f"≥ {wanted:g} x", measured, known[0][0] >= wanted)


def _together(what: str, cases: Sequence[Found], wanted: float) -> Goal:
    known = [case.ratio.value for case in cases if case.ratio]
    mean = geometric_mean(known)
    if mean is None:
        return Goal(what, f"≥ {wanted:g} x", "not measured", None)
    is_whole = len(known) == len(cases)
    measured = f"{words.number(mean)} x over {len(known)} of {words.plural(len(cases), 'set')}"
    return Goal(what, f"≥ {wanted:g} x", measured, mean >= wanted and is_whole)


def ratio_touching(case: Found) -> float | None:
    """Seconds to the first touch of the target, rival by sparse."""
    return case.ratio.value if case.ratio else None


def ratio_staying(case: Found) -> float | None:
    """Seconds from which on the measure stays at the target, rival by sparse."""
    return case.ratio_staying


Reading = Callable[[Found], float | None]


def shared(found: ByTolerance, reading: Reading) -> dict[str, list[float]]:
    """The ratios of each case, a tolerance each, of those that have one at every tolerance."""
    every = {each[0].name: list(map(reading, each)) for each in zip(*found.values(), strict=True)}
    return {name: [one for one in each if one is not None] for name, each in every.items() if None not in each}


def means(found: ByTolerance, reading: Reading = ratio_touching) -> list[float | None]:
    """The geometric mean of the ratios at each tolerance, over the cases that have one at every tolerance."""
    each = list(shared(found, reading).values())
    return [geometric_mean(ratios) for ratios in zip(*each, strict=True)] if each else [None] * len(found)


def moved(found: ByTolerance) -> str:
    """Statement of how far the choice of the tolerance moves the geometric mean, and the case that it moves most."""
    if len(found) < 2:
        only = share(next(iter(found)))
        return f"The target was within {only} alone: how far that choice moves the ratios is not known."
    ratios = shared(found, ratio_touching)
    if not ratios:
        return "No case has a ratio at every tolerance: how far that choice moves the ratios is not known."
    mean = [value for value in means(found) if value is not None]
    name = max(ratios, key=lambda name: _spread(ratios[name]))
    return (
        f"The choice of the tolerance moves the geometric mean by {words.number(_spread(mean))} x: it is "
        f"{_listed(found, mean)}. It moves {name} most: {_listed(found, ratios[name])}. "
        "None of the tolerances decides alone."
    )


def _spread(ratios: Sequence[float]) -> float:
    return max(ratios) / min(ratios)


def _listed(found: ByTolerance, ratios: Sequence[float]) -> str:
    each = zip(found, ratios, strict=True)
    return words.join(f"{words.number(value)} x at {share(tolerance)}" for tolerance, value in each)


def table(found: ByTolerance) -> tuple[tuple[str, ...], list[list[str]]]:
    """Columns and lines of the ratios of each case, by first touch and staying, then their geometric means."""
    columns = ("case", *map(share, found), *(f"{share(tolerance)}, staying" for tolerance in found))
    lines = [
        [each[0].name, *_shown(map(ratio_touching, each)), *_shown(map(ratio_staying, each))]
        for each in zip(*found.values(), strict=True)
    ]
    mean = ["geometric mean of cases with all", *_shown(means(found)), *_shown(means(found, ratio_staying))]
    return columns, [*lines, mean]


def _shown(values: Iterable[float | None]) -> list[str]:
    return ["" if value is None else f"{words.number(value)} x" for value in values]
