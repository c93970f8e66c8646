"""Sparse against dense at one point: a verdict from intervals, never from two bare medians."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from workbench.analysis import cells, words
from workbench.analysis.intervals import interval_of, known

# Three samples a side fall apart by chance in one comparison of ten, four in one of thirty-five.
LEAST_SAMPLES = 4
LEVEL = 1.01  # configurations this close are called level, whatever their intervals
# A lazy update that ends this much worse than the standard one has trained another model.
LOSS_ALLOWED = 0.01
QUALITY_ALLOWED = 0.005


class Ratio(NamedTuple):
    """Dense divided by sparse: above 1 sparse is better. The ends combine the far ends of both intervals."""

    value: float
    low: float
    high: float

    def gain(self) -> str:
        """How many times the winner is better, with the interval where there is one."""
        ends = (self.value, self.low, self.high) if self.value >= 1 else (1 / self.value, 1 / self.high, 1 / self.low)
        value, *interval = words.around(*ends, words.number).split(" ", 1)
        return " ".join([value, "times", *interval])


class Contest(NamedTuple):
    """The best sparse row against the dense baseline at one density; `level` are the sparse rows no worse than it."""

    density: float | None
    sparse: Mapping[str, Any] | None
    dense: Mapping[str, Any] | None
    verdict: str
    ratio: Ratio | None
    level: tuple[Mapping[str, Any], ...] = ()


def verdict(sparse_row: Mapping[str, Any], dense_row: Mapping[str, Any], measure: str) -> str:
    """ "sparse" or "dense" where the intervals of the measure lie apart, else "undecided"; smaller is better.

    A side that did not fit in memory loses to a side that did. With fewer than four samples of a time on either side,
    or a side without the number, it is undecided.
    """
    fits = {row["status"] for row in (sparse_row, dense_row)}
    if fits == {"ok", "memory"}:
        return "sparse" if sparse_row["status"] == "ok" else "dense"
    sparse, dense = (interval_of(row, measure) for row in (sparse_row, dense_row))
    if fits != {"ok"} or sparse is None or dense is None or too_few(sparse_row, dense_row, measure):
        return "undecided"
    if sparse.high < dense.low:
        return "sparse"
    return "dense" if sparse.low > dense.high else "undecided"


def too_few(sparse_row: Mapping[str, Any], dense_row: Mapping[str, Any], measure: str) -> bool:
    """Whether a side has so few samples of a time that falling apart could be chance."""
    rows = (sparse_row, dense_row)
    return measure == "seconds_step" and any(
        row.get("samples") is not None and len(row["samples"]) < LEAST_SAMPLES for row in rows
    )


def ratio(sparse_row: Mapping[str, Any], dense_row: Mapping[str, Any], measure: str) -> Ratio | None:
    """How many times less sparse takes than dense, None where a side has no such number or it is zero."""
    sparse, dense = (interval_of(row, measure) for row in (sparse_row, dense_row))
    if sparse is None or dense is None or min(sparse.low, dense.low) <= 0:
        return None
    return Ratio(dense.value / sparse.value, dense.low / sparse.high, dense.high / sparse.low)


def contests(rows: Iterable[Mapping[str, Any]], measure: str) -> list[Contest]:
    """For each density of a group's rows, rising: the best sparse row that may win against the dense baseline.

    Rows of a lazy update that trained to a worse model (`trained_worse`) may not win. Of configurations that cannot be
    told apart at a density, the one that is among the best at most densities stands for them.
    """
    rows = list(rows)
    worse = {id(row) for row, _ in trained_worse(rows)}
    by_density = list(cells.by_density(rows).values())
    best = [
        _best([row for row in at if not cells.is_dense(row) and id(row) not in worse], measure) for at in by_density
    ]
    wins = Counter(_line(row) for level in best for row in level)
    ranked = [sorted(level, key=lambda row: (-wins[_line(row)], _rank(row, measure))) for level in best]
    contests = [_contest(at, level, measure) for at, level in zip(by_density, ranked, strict=True)]
    return sorted(contests, key=lambda contest: contest.density or 0.0)


def _contest(at: list[Mapping[str, Any]], level: list[Mapping[str, Any]], measure: str) -> Contest:
    sparse = level[0] if level else None
    dense = min(cells.dense_rows(at), key=lambda row: _rank(row, measure), default=None)
    measured = (row["density_measured"] for row in at if row["density_measured"] is not None)
    density = next(measured, at[0]["density"])
    if sparse is None or dense is None:
        return Contest(density, sparse, dense, "undecided", None)
    result = verdict(sparse, dense, measure), ratio(sparse, dense, measure)
    return Contest(density, sparse, dense, *result, tuple(level[1:]))


def _best(rows: list[Mapping[str, Any]], measure: str) -> list[Mapping[str, Any]]:
    """The rows as good as the best: their number lies in its interval, or within 1 % of it; noise does not help."""
    if not rows:
        return []
    first = min(rows, key=lambda row: _rank(row, measure))
    top = interval_of(first, measure)
    if first["status"] != "ok" or top is None:
        return [first]
    reach = max(top.high, LEVEL * top.value)
    return [row for row in rows if _rank(row, measure) <= (0, reach)]


def _line(row: Mapping[str, Any]) -> tuple:
    return tuple(cells.line_of(row).values())


def _rank(row: Mapping[str, Any], measure: str) -> tuple[int, float]:
    """Sorts ok rows by the measure, before those that did not fit, before the rest."""
    value = known(row[measure])
    if row["status"] != "ok" or value is None:
        return (1 if row["status"] == "memory" else 2, 0.0)
    return (0, value)


def trained_worse(rows: Iterable[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Pairs (lazy row, standard row) of the same density where the lazy update ended with a worse model.

    Worse is a last loss more than 1 % higher after as many steps, or a quality more than 0.005 lower. The standard row
    is the one alike in format, engine, gradient and indices where there is one, else the dense baseline, else any.
    """
    pairs = []
    for at in cells.by_density(row for row in rows if row["status"] == "ok").values():
        standard = sorted((row for row in at if row["update"] == "standard"), key=lambda row: not cells.is_dense(row))
        for lazy in (row for row in at if row["update"] == "lazy"):
            alike = (row for row in standard if all(row[name] == lazy[name] for name in _ALIKE))
            fair = next(alike, standard[0] if standard else None)
            if fair is not None and _is_worse(lazy, fair):
                pairs.append((lazy, fair))
    return pairs


_ALIKE = tuple(name for name in cells.LINE if name not in ("update", "launch"))


def _last_step(row: Mapping[str, Any]) -> int | None:
    return row["curve"][-1][2] if row["curve"] else None


def _is_worse(row: Mapping[str, Any], fair: Mapping[str, Any]) -> bool:
    loss, fair_loss = known(row["loss_last"]), known(fair["loss_last"])
    quality, fair_quality = known(row["quality"]), known(fair["quality"])
    as_far = _last_step(row) == _last_step(fair)  # a timing run stops when it knows enough, each at another step
    more_loss = as_far and None not in (loss, fair_loss) and loss > fair_loss + LOSS_ALLOWED * abs(fair_loss)
    return more_loss or (None not in (quality, fair_quality) and quality < fair_quality - QUALITY_ALLOWED)
