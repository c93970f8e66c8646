"""Numbers and settings as words: units chosen to fit, no more digits than are known, three at most."""

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kernels.registry import format_count as format_count
from workbench.analysis.intervals import COMPUTED, interval_of
from workbench.measure.posterior import EQUIVALENCE_MARGIN, Ratio

RANGE = 2.0
"""What is known no better than to this factor is a range, and no number."""
Tell = Callable[..., str]
"""Says a number, its digits the second argument.

`format_number`, `format_seconds`, `format_bytes`, `format_density`.
"""

_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_BYTES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))
NAMES = {"csr": "CSR", "csc": "CSC", "coo": "COO"}
"""Formats whose names are written in capitals."""


def format_number(value: float, digits: int = 3) -> str:
    """Return `value` as text with `digits` significant digits, without exponent and trailing zeros."""
    text = f"{float(f'{value:.{digits}g}'):.12f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _format_with_unit(units: Sequence[tuple[float, str]], value: float, digits: int = 3) -> str:
    """Return `value` in the largest unit in which it is at least 1, such as "13.2 ms".

    `units` are (scale, name) pairs from large to small, one of scale 1; 0 is given in that one, and values too small in
    the last one. `digits` is the number of significant digits.
    """
    if value == 0:
        return f"0 {dict(units)[1.0]}"
    rounded = abs(float(f"{value:.{digits}g}"))
    scale, unit = units[-1]
    for larger in units[:-1]:
        if rounded >= larger[0]:
            scale, unit = larger
            break
    return f"{format_number(value / scale, digits)} {unit}"


format_seconds: Tell = functools.partial(_format_with_unit, _SECONDS)
"""Returns a time in seconds with a suitable unit (s, ms, µs, ns), such as "13.2 ms"; digits second, by default 3."""
format_bytes: Tell = functools.partial(_format_with_unit, _BYTES)
"""Returns a size in bytes with a suitable unit, in powers of 1000, such as "1.5 GB"; digits second, by default 3."""


def format_density(value: float, digits: int = 3) -> str:
    """Return a density, a fraction, in per cent with `digits` significant digits, such as "12.5 %"."""
    return f"{format_number(100 * value, digits)} %"


def formatter_of(measure: str) -> Tell:
    """Return what formats the values of a column: as seconds if its name begins with "seconds", else as bytes."""
    return format_seconds if measure.startswith("seconds") else format_bytes


def format_measured(value: float, low: float, high: float, tell: Tell) -> str:
    """Return a measured number with the digits that its interval allows: every sentence says measured numbers so.

    Known to 10 %: the number, two digits. To a factor of two: both bounds, two digits. Worse: both bounds, one digit,
    or two that begin with a 1. "at most" or "at least" the other bound if one is 0 or infinite, as that of memory below
    what can be measured. "about" if it was measured once or neither bound is known. `tell` formats (value, digits).

    >>> format_measured(31.84, 31.8, 31.9, format_number), format_measured(4.96, 4.62, 5.41,
    ... format_number), format_measured(0.052, 0.021, 0.12, format_density)
    ('32', '4.6 to 5.4', '2 to 12 %')
    >>> format_measured(0.0141, 0.0141, 0.0141, format_seconds), format_measured(5.3, 0.0, float("inf"), format_number)
    ('about 14 ms', 'about 5')
    >>> format_measured(3e5, 0.0, 1.35e6, format_bytes), format_measured(33, 7.2, float("inf"), format_number)
    ('at most 1.4 MB', 'at least 7.2')
    """
    if low == high:
        return f"about {tell(value, 2)}"
    if low <= 0 or math.isinf(high):
        if low > 0 or not math.isinf(high):
            return f"at least {tell(low, 2)}" if low > 0 else f"at most {tell(high, 2)}"
        return f"about {_format_rough_density(value, tell)}"
    if high < EQUIVALENCE_MARGIN * low:
        return tell(value, 2)
    if high < RANGE * low:
        return format_span(low, high, lambda end: tell(end, 2))
    return format_span(low, high, lambda end: _format_rough_density(end, tell))


def format_breakeven(value: float | None, low: float, high: float) -> str:
    """Return where a break-even density lies, as exactly as it is known; `value` None means only the bounds are.

    `low` and `high` are the bounds of its interval, all as fractions.

    >>> format_breakeven(0.082, 0.08, 0.084), format_breakeven(0.082, 0.07, 0.09), format_breakeven(None, 0.03, 0.09)
    ('at 8.2 % density', 'at 7 to 9 % density', 'somewhere between 3 % and 9 % density')
    """
    if value is None or high >= RANGE * low:
        return (
            f"somewhere between {_format_rough_density(low, format_density)} and "
            f"{_format_rough_density(high, format_density)} density"
        )
    return f"at {format_measured(value, low, high, format_density)} density"


def format_densities(contests: Iterable[Any], digits: int = 3) -> str:
    """Return the `density` of each contest as a list, such as "1 %, 3 % and 10 %"; None is "the data's own density"."""
    at = [each.density for each in contests]
    return join_items("the data's own density" if one is None else format_density(one, digits) for one in at)


def _format_rough_density(value: float, tell: Tell) -> str:
    """Return a value formatted by `tell` with one significant digit, or two if its first digit is 1."""
    return tell(value, 2 if f"{value:e}".startswith("1") else 1)


def format_measured_quantity(row: Mapping[str, Any], measure: str) -> str:
    """Return the value of a column of a pooled record with unit and justified digits; "" if it has none.

    A missing `bytes_peak` of a record without a result is replaced by the predicted bytes. `row` is the record,
    `measure` a column of seconds or bytes.
    """
    known = interval_of(row, measure)
    if known is None and measure == "bytes_peak" and row["status"] not in ("ok", "disturbed"):
        known = interval_of(row, "bytes_predicted")  # by formula, of what was not measured
    if known is None:
        return ""
    tell = formatter_of(measure)
    if known.low == known.high and known.why == COMPUTED:
        return tell(known.value, 3)
    return format_measured(known.value, known.low, known.high, tell)


def format_times(ratio: Ratio) -> str:
    """Format a ratio as a factor, with both bounds if they lie on different sides of 1.

    >>> format_times(Ratio(4.96, 4.62, 5.41)), format_times(Ratio(1.0, 0.97, 1.03)), format_times(Ratio(1.4, 1.02,
    ... 1.98))
    ('4.6 to 5.4 times', '0.97 to 1.03 times', '1.02 to 2 times')
    """
    if 0 < ratio.low < 1 < ratio.high < RANGE:
        return f"{format_span(ratio.low, ratio.high, lambda end: format_factor(end, 2))} times"
    return f"{format_measured(ratio.value, ratio.low, ratio.high, format_factor)} times"


def format_factor(value: float, digits: int) -> str:
    """Return a factor with `digits` significant digits, with up to three if it would otherwise read "1"."""
    return next((text for more in range(digits, 4) if (text := format_number(value, more)) != "1"), "1")


def format_gain(ratio: Ratio) -> str:
    """Return how many times better the better side is, such as "4.6 to 5.4 times"; a ratio below 1 is inverted."""
    return format_times(ratio if ratio.value >= 1 else invert_ratio(ratio))


def invert_ratio(ratio: Ratio) -> Ratio:
    """Return the ratio second / first, with inverted interval and probability."""
    value, low, high = (1 / end if end else math.inf for end in (ratio.value, ratio.high, ratio.low))
    return ratio._replace(value=value, low=low, high=high, probability=1 - ratio.probability)


def format_span(low: float, high: float, tell: Any) -> str:
    """Return both ends of an interval, the unit once where both have it.

    `tell` formats one number.

    >>> format_span(0.0132, 0.0145, format_seconds), format_span(0.0009, 0.0011, format_seconds), format_span(5.8,
    ... 6.4, format_number)
    ('13.2 to 14.5 ms', '900 µs to 1.1 ms', '5.8 to 6.4')
    """
    first, second = tell(low), tell(high)
    unit = second.partition(" ")[2]
    return f"{first.removesuffix(' ' + unit) if unit else first} to {second}"


def format_with_interval(value: float, low: float, high: float, tell: Any) -> str:
    """Return "value (low to high)" formatted by `tell`, without the interval if its bounds read the same."""
    return tell(value) if tell(low) == tell(high) else f"{tell(value)} ({format_span(low, high, tell)})"


def capitalized(text: str) -> str:
    """Return the text with its first letter in upper case; "" stays ""."""
    return f"{text[:1].upper()}{text[1:]}"


def join_items(items: Iterable[str], last: str = "and") -> str:
    """Return items joined by commas and the word `last`, such as "a, b and c"; ValueError without items."""
    *most, final = items
    return f"{', '.join(most)} {last} {final}" if most else final


def name_configuration(row: Mapping[str, Any]) -> str:
    """Return the plain name of a record's configuration: settings that are not the default, as `legend` explains them.

    >>> name_configuration({"format": "csr", "engine": "ours", "gradient": "row_sparse", "update": "lazy",
    ...                     "execution": "epoch"})
    'sparse, lazy, whole epochs'
    >>> name_configuration({"format": "dense", "storage": "csr", "serial": True})
    'dense from CSR batches, 1 thread'
    """
    return ", ".join(_name_parts(row))


def _name_parts(row: Mapping[str, Any]) -> list[str]:
    """Return the parts of a configuration's name, the side first."""
    execution, trainers = EXECUTIONS.get(str(row.get("execution")), ""), row.get("trainers") or 1
    last = [
        "64-bit indices" if row.get("index_dtype") == "int64" else "",
        execution,
        "1 thread" if row.get("serial") else "",
        f"{trainers} trainers" if trainers > 1 else "",
    ]
    if row["format"] == "dense":
        storage = row.get("storage") or "same"
        kept = "" if storage == "same" else f" from {NAMES.get(storage, storage)} batches"
        return [*filter(None, (f"dense{kept}{device_suffix(row)}", *last))]
    is_vendor, kind = row["engine"] == "vendor", NAMES.get(row["format"], row["format"])
    own = [
        f"sparse{'' if row['format'] == 'csr' else f' {kind}'}{device_suffix(row)}",
        ("cuSPARSE" if device_suffix(row) else "SciPy") if is_vendor else "",
        "" if row["update"] == "standard" else row["update"],
        "" if row["gradient"] == "row_sparse" else f"{row['gradient']} gradient",
    ]
    return [*filter(None, (*own, *last))]


EXECUTIONS = {"cuda_graph": "CUDA graph", "epoch": "whole epochs", "dual": "dual ascent"}
"""Part of a name for each execution but single steps."""
TERMS = {
    "sparse": "rows are kept as CSR, and a step computes with the stored entries",
    "dense": "rows are kept as a dense array",
    "dense from CSR batches": "rows are kept as CSR, and each batch is made dense",
    "dense from uint8 batches": "rows are kept as bytes, and each batch is widened to floats",
    "dense from float16 batches": "rows are kept as float16, and each batch is widened",
    "lazy": "a step updates only the weights of columns that its batch has",
    "exact": "as lazy, and skipped decay is made up for, so that the model is that of dense",
    "fused gradient": "gradient and update are one pass",
    "dense gradient": "the gradient has all weights",
    "whole epochs": "an epoch is one compiled call instead of a call for each step",
    "dual ascent": "an epoch is one compiled call that solves for a dual variable of each row",
    "CUDA graph": "a step is launched as one CUDA graph",
    "SciPy": "products by SciPy",
    "cuSPARSE": "products by cuSPARSE",
    "1 thread": "this candidate used one thread",
}
"""What each part of a name means."""


def legend(rows: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return (part of a name, meaning) of the names of these configurations, in the order of `TERMS`."""
    used = {part.removesuffix(device_suffix(row)) for row in rows for part in _name_parts(row)}
    return [(term, meaning) for term, meaning in TERMS.items() if term in used]


def device_suffix(row: Mapping[str, Any]) -> str:
    """Return " on DEVICE" for a record that did not train on the CPU, to append to a name, else "".

    >>> device_suffix({"device": "cuda"}), device_suffix({"device": "cpu"})
    (' on cuda', '')
    """
    device = row.get("device")
    return f" on {device}" if device not in (None, "cpu") else ""
