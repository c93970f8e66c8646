"""Rows of a lazy or an exact update that trained a worse model than the standard one beside them."""

from collections.abc import Iterable, Mapping
from typing import Any

from workbench.analysis import cells
from workbench.analysis.intervals import known

Row = Mapping[str, Any]

# A lazy update that ends this much worse than the standard one has trained another model.
LOSS_ALLOWED = 0.01
QUALITY_ALLOWED = 0.005


def trained_worse(rows: Iterable[Row]) -> list[tuple[Row, Row]]:
    """Pairs (lazy row, standard row) of the same density where the lazy update ended with a worse model.

    Worse is a last loss more than 1 % higher, or a quality more than 0.005 lower, after as many steps with the same
    learning rate, decay and seed.
    """
    return [(row, fair) for row, fair in beside_standard(rows) if row["update"] == "lazy" and _is_worse(row, fair)]


def beside_standard(rows: Iterable[Row]) -> list[tuple[Row, Row]]:
    """Each row of a lazy or an exact update with the row of the standard one to hold it against, where there is one.

    That is trained alike: as many steps, the same learning rate, decay and seed. It is the one alike in format, engine,
    gradient and indices where there is one, else the dense baseline, else any: a standard update trains the same model
    in all of them.
    """
    pairs = []
    for at in cells.by_density(row for row in rows if row["status"] in cells.NUMBERED).values():
        standard = sorted((row for row in at if row["update"] == "standard"), key=lambda row: not cells.is_dense(row))
        for other in (row for row in at if row["update"] != "standard"):
            equal = [row for row in standard if _trained_alike(row, other)]
            alike = (row for row in equal if all(row[name] == other[name] for name in _ALIKE))
            fair = next(alike, equal[0] if equal else None)
            if fair is not None:
                pairs.append((other, fair))
    return pairs


_ALIKE = tuple(name for name in cells.LINE if name not in ("update", "launch"))


def _trained_alike(row: Row, other: Row) -> bool:
    """Whether two trainings differ in the update alone: settings of the optimizer, seed, and how far they went.

    A timing run stops when it knows enough, each at another step.
    """
    steps = [one["curve"][-1][2] if one["curve"] else None for one in (row, other)]
    return all(row[name] == other[name] for name in cells.BEST) and steps[0] is not None and steps[0] == steps[1]


def _is_worse(row: Row, fair: Row) -> bool:
    loss, fair_loss = known(row["loss_last"]), known(fair["loss_last"])
    quality, fair_quality = known(row["quality"]), known(fair["quality"])
    if loss is not None and fair_loss is not None and loss > fair_loss + LOSS_ALLOWED * abs(fair_loss):
        return True
    return quality is not None and fair_quality is not None and quality < fair_quality - QUALITY_ALLOWED
