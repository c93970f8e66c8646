"""Cost model of a step, fitted on rows: fixed + bytes / bandwidth + gathered bytes / bandwidth + operations.

Bytes and operations are those of the kernels' own `cost` for the step of a configuration: its slice, both products,
its update. The four coefficients are fitted for each configuration on each machine, none negative, by least squares of
relative errors (Lawson and Hanson 1974, non-negative least squares): a step of 10 us counts as much as one of 10 ms.

Only rows are looked at. What the model says outside of the sizes that it was fitted on is marked as extrapolated, and
`predictions` predicts each data set by a model of the others.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import numpy as np
from scipy.optimize import brentq, nnls

import kernels
from kernels.contract import Sizes
from workbench.analysis.pool import group_by
from workbench.ops import products
from workbench.settings import columns
from workbench.training import Setup

Record = Mapping[str, Any]
LINE = columns("line")
ALIKE = (*LINE, "device", "optimizer", "model", "dtype", "threads", "shuffle", "machine")
"""Columns in which the rows agree that one configuration is fitted on."""
KERNELS = tuple(name for name in ALIKE if name not in ("optimizer", "model"))
"""Columns in which rows agree that run the same products on one machine, whatever is trained with them."""
LEAST = 3
"""Rows that a fit takes at least."""
DENSITIES = np.geomspace(1e-6, 0.9, 80)
SPAN = ("R", "z", "D", "N")
"""Sizes whose range in the rows is where a fit is no extrapolation."""


@dataclass(frozen=True)
class CostModel:
    """A fitted cost model of one configuration on one machine.

    Seconds per cost term, and the range of sizes it was fitted on.
    """

    settings: dict[str, Any]
    coefficients: tuple[float, ...]
    spans: dict[str, tuple[float, float]]
    rows: int

    def seconds(self, sizes: Sizes) -> float:
        """Return the predicted seconds of a step of these sizes."""
        return float(np.dot(self.coefficients, cost_terms(self.settings, sizes)))

    def is_inside(self, sizes: Sizes) -> bool:
        """Return whether the sizes lie within the fitted range, with a tolerance of 10 %."""
        return all(low / 1.1 <= getattr(sizes, name) <= 1.1 * high for name, (low, high) in self.spans.items())

    @property
    def bandwidth(self) -> float | None:
        """Bytes per second that steps move; None if bytes make no difference in the fitted records."""
        return 1 / self.coefficients[1] if self.coefficients[1] > 0 else None


@dataclass(frozen=True)
class Crossing:
    """The density from which dense is predicted to be faster, None for none; `what` was changed, times `factor`."""

    what: str
    factor: float
    density: float | None
    is_extrapolated: bool


@dataclass(frozen=True)
class Prediction:
    """The seconds of a step of a row, predicted without it; `is_extrapolated` beyond the sizes of what was fitted."""

    row: Record
    seconds: float
    is_extrapolated: bool

    @property
    def error(self) -> float:
        """Absolute value of log(predicted / measured): 0.1 is a tenth off in either direction."""
        return abs(math.log(self.seconds / self.row["seconds_step"]))


def cost_terms(settings: Record, sizes: Sizes) -> np.ndarray:
    """Return the cost terms of a step, float64 `[4]`: 1, bytes moved, bytes gathered, operations.

    `settings` are the columns of a record that choose its kernels, `sizes` those of its batch.
    """
    costs = [kernels.get(name).cost(sizes) for name in kernels_of(settings)]
    moved = sum(cost.bytes_compulsory for cost in costs)
    if settings["format"] == "dense":
        moved += _bytes_of_cut(settings, sizes)
    return np.array([1.0, moved, sum(cost.bytes_gather for cost in costs), sum(cost.flops for cost in costs)], float)


def _bytes_of_cut(settings: Record, sizes: Sizes) -> int:
    """Return the bytes moved to make a dense batch, by how the data is held; 0 for rows that are read in place."""
    batch, storage = sizes.R * sizes.D * sizes.value, settings.get("storage") or "same"
    if storage == "csr":
        return batch + sizes.z * (sizes.value + sizes.index)
    if storage == "same":
        return 0 if settings.get("execution") == "epoch" else 2 * batch
    return batch + sizes.R * sizes.D * np.dtype(storage).itemsize


def kernels_of(settings: Record) -> list[str]:
    """Return the names of the kernels that a step runs: slice, both products, update.

    Raises products.NoRuleError for settings without a kernel.
    """
    setup = Setup(**{name: settings[name] for name in ("format", "engine", "gradient", "update")})
    optimizer = settings["optimizer"]
    if settings["gradient"] == "fused":
        last = [f"{optimizer}_fused"]
    else:
        is_dense = settings["gradient"] == "dense"
        last = [setup.gradient_rule.kernel, f"{optimizer}_{'dense' if is_dense else 'lazy'}"]
    cut = [] if settings["format"] == "dense" else ["slice_rows"]
    return [*cut, setup.forward_rule.kernel, *last]


def sizes_of(row: Record) -> Sizes:
    """Return the sizes of a step of a record: batch rows, entries, features, outputs, active columns, and bytes."""
    value = 8 if row["dtype"] == "float64" else 4
    rows = min(row["batch_rows"], row["rows_trained"] or row["batch_rows"])
    return Sizes(rows, round(row["nnz_batch"]), row["features"], row["width"], round(row["touched"]), value, 4)


def is_usable(row: Record) -> bool:
    """Return whether a record is successful, on the CPU, with a time, sizes and known kernels."""
    numbers = ("seconds_step", "nnz_batch", "touched", "features", "width")
    if row["status"] != "ok" or any(not row[name] for name in numbers):
        return False
    try:
        kernels_of(row)
    except products.NoRuleError:
        return False
    return row["device"] == "cpu"


def fit_cost_models(rows: Iterable[Record]) -> list[CostModel]:
    """Return a fitted model of each configuration that has at least `LEAST` usable pooled records. O(rows)."""
    return list(_fits(rows, ALIKE).values())


def _fits(rows: Iterable[Record], names: Sequence[str]) -> dict[tuple, CostModel]:
    """Return {values of the columns `names`: model of the records that agree in them}, where there are enough."""
    alike = group_by(filter(is_usable, rows), itemgetter(*names))
    return {values: _fit_cost_model(rows) for values, rows in alike.items() if len(rows) >= LEAST}


def _fit_cost_model(rows: Sequence[Record]) -> CostModel:
    """Return the model fitted to records by non-negative least squares of relative times."""
    settings = {name: rows[0][name] for name in ALIKE}
    sizes = [sizes_of(row) for row in rows]
    matrix = np.array([cost_terms(row, each) / row["seconds_step"] for each, row in zip(sizes, rows, strict=True)])
    scale = np.maximum(matrix.max(axis=0), np.finfo(float).tiny)
    found, _ = nnls(matrix / scale, np.ones(len(rows)))
    of_name = {name: [getattr(size, name) for size in sizes] for name in SPAN}
    spans = {name: (min(known), max(known)) for name, known in of_name.items()}
    return CostModel(settings, tuple(map(float, found / scale)), spans, len(rows))


def data_of(row: Record) -> tuple:
    """Return (data set, path, rows, features) of a record, which identify its data."""
    return tuple(row[name] for name in ("dataset", "path", "rows_total", "features"))


def predictions(rows: Iterable[Record]) -> list[Prediction]:
    """Predict each record of each data set by a model fitted on the other data sets.

    If the others have no record of its configuration, those of other models or optimizers with the same kernels are
    fitted. Records without enough others are left out; empty for a single data set. O(data sets * rows).
    """
    rows = [row for row in rows if is_usable(row)]
    found = []
    for left_out in dict.fromkeys(map(data_of, rows)):
        others = [row for row in rows if data_of(row) != left_out]
        fits, wider = _fits(others, ALIKE), _fits(others, KERNELS)
        for row in (row for row in rows if data_of(row) == left_out):
            same, kernels_alone = (tuple(row[name] for name in names) for names in (ALIKE, KERNELS))
            if one := fits.get(same) or wider.get(kernels_alone):
                found.append(_predict(row, one))
    return found


def predictions_within(rows: Iterable[Record]) -> list[Prediction]:
    """Predict each record by a model fitted on the other records of its configuration, also of the same data set.

    Configurations with fewer than `LEAST` + 1 records are left out.
    """
    return [
        _predict(row, _fit_cost_model([*alike[:place], *alike[place + 1 :]]))
        for alike in group_by(filter(is_usable, rows), itemgetter(*ALIKE)).values()
        if len(alike) > LEAST
        for place, row in enumerate(alike)
    ]


def _predict(row: Record, fitted: CostModel) -> Prediction:
    """Return the predicted step time of a record by a model, and whether it extrapolates."""
    sizes, fitted = sizes_of(row), replace(fitted, settings={name: row[name] for name in ALIKE})
    at = replace(sizes, z=_entries_in_range(fitted)) if row["format"] == "dense" else sizes
    return Prediction(row, max(fitted.seconds(sizes), 1e-12), not fitted.is_inside(at))


def median_log_error(found: Iterable[Prediction]) -> float | None:
    """Return the median of |log(predicted / measured)|; None without a prediction."""
    return float(np.median(missed)) if (missed := [one.error for one in found]) else None


def error_by_data_set(rows: Iterable[Record]) -> dict[tuple, float]:
    """Return {data: median |log(predicted / measured)|} when each data set is predicted by the others."""
    by_data = group_by(predictions(rows), lambda prediction: data_of(prediction.row))
    return {data: median_log_error(found) or 0.0 for data, found in by_data.items()}


def columns_in_use(sizes: Sizes) -> float:
    """Return how many evenly used columns would be active as often as the data's, a float from 1 to D.

    Skewed data has few.
    """
    missing = lambda used: used * -math.expm1(-sizes.z / used) - sizes.U  # noqa: E731
    if sizes.z <= sizes.U or missing(sizes.D) <= 0:
        return float(sizes.D)
    return float(brentq(missing, max(sizes.U, 1), sizes.D)) if missing(max(sizes.U, 1)) < 0 else float(sizes.U)


def sizes_at_density(sizes: Sizes, density: float, used: float) -> Sizes:
    """Return the sizes of a batch at another density, its entries spread evenly over `used` columns."""
    entries = density * sizes.R * sizes.D
    active = min(used * -math.expm1(-entries / used), entries, sizes.D)
    return replace(sizes, z=max(round(entries), 1), U=max(round(active), 1))


def predict_crossing(
    sparse: CostModel, dense: Sequence[CostModel], sizes: Sizes, what: str = "", factor: float = 1.0
) -> Crossing:
    """Return the density at which the best of the `dense` models becomes faster than `sparse`, with one size changed.

    `what` is "width", "batch", "features" or "skew", "" for nothing, changed by `factor`. The density is None if there
    is no crossing.
    """
    used = columns_in_use(sizes)
    changed = {"width": "N", "batch": "R", "features": "D"}.get(what)
    if changed:
        sizes = replace(sizes, **{changed: max(round(getattr(sizes, changed) * factor), 1)})
    used = used * factor if what in ("features", "skew") else used
    used = min(max(used, 1.0), float(sizes.D))

    def advantage(density: float) -> float:
        """Return log(sparse / least dense seconds) at a density; positive if dense is faster."""
        at = sizes_at_density(sizes, density, used)
        least = min(one.seconds(at) for one in dense)
        return math.log(max(sparse.seconds(at), 1e-12) / max(least, 1e-12))

    signs = [advantage(density) for density in DENSITIES]
    place = next((k for k in range(1, len(signs)) if signs[k - 1] < 0 <= signs[k]), None)
    if place is None:
        return Crossing(what, factor, None, True)
    found = float(brentq(advantage, DENSITIES[place - 1], DENSITIES[place]))
    at = sizes_at_density(sizes, found, used)
    best = min(dense, key=lambda one: one.seconds(at))
    return Crossing(
        what, factor, found, not (sparse.is_inside(at) and best.is_inside(replace(at, z=_entries_in_range(best))))
    )


def _entries_in_range(dense: CostModel) -> int:
    """Return the entries of a record within the range of a dense fit, whose steps do not depend on them."""
    return round(dense.spans["z"][0])


def crossing_sensitivities(
    sparse: CostModel, dense: Sequence[CostModel], sizes: Sizes, factor: float = 4.0
) -> list[Crossing]:
    """Return the crossing of `sparse` and the best of `dense` as it is, then with one size changed at a time.

    Divided and multiplied by `factor`, in this order: width, batch, features, columns in use.
    """
    changes = [(what, times) for what in ("width", "batch", "features", "skew") for times in (1 / factor, factor)]
    return [
        predict_crossing(sparse, dense, sizes),
        *(predict_crossing(sparse, dense, sizes, *change) for change in changes),
    ]
