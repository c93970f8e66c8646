"""Numbers and settings as words: units chosen to fit, three significant digits at most."""

from collections.abc import Iterable, Mapping
from typing import Any

_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_BYTES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))
_NAMES = {"csr": "CSR", "csc": "CSC", "coo": "COO"}


def number(value: float) -> str:
    """Three significant digits, no exponent, no zeros that say nothing.

    >>> number(1234.5), number(0.0345678), number(2.0), number(0)
    ('1230', '0.0346', '2', '0')
    """
    text = f"{float(f'{value:.3g}'):.12f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _with_unit(value: float, units: Iterable[tuple[float, str]]) -> str:
    units = tuple(units)
    if value == 0:
        return next(f"0 {unit}" for scale, unit in units if scale == 1.0)
    rounded = abs(float(f"{value:.3g}"))
    scale, unit = next(((scale, unit) for scale, unit in units if rounded >= scale), units[-1])
    return f"{number(value / scale)} {unit}"


def seconds(value: float) -> str:
    """A time with its unit.

    >>> seconds(0.0141234), seconds(0.00099999), seconds(75)
    ('14.1 ms', '1 ms', '75 s')
    """
    return _with_unit(value, _SECONDS)


def bytes_(value: float) -> str:
    """A size with its unit, in powers of 1000.

    >>> bytes_(45_612_345), bytes_(82e9), bytes_(0)
    ('45.6 MB', '82 GB', '0 B')
    """
    return _with_unit(value, _BYTES)


def density(value: float) -> str:
    """A density in per cent.

    >>> density(0.0732), density(0.00028)
    ('7.32 %', '0.028 %')
    """
    return f"{number(100 * value)} %"


def quantity(value: float, measure: str) -> str:
    """A number of the column `measure`, in the unit that its name states."""
    return seconds(value) if measure.startswith("seconds") else bytes_(value)


def span(low: float, high: float, tell: Any) -> str:
    """Both ends of an interval, the unit once where both have it.

    >>> span(0.0132, 0.0145, seconds), span(0.0009, 0.0011, seconds), span(5.8, 6.4, number)
    ('13.2 to 14.5 ms', '900 µs to 1.1 ms', '5.8 to 6.4')
    """
    first, second = tell(low), tell(high)
    unit = second.partition(" ")[2]
    return f"{first.removesuffix(' ' + unit) if unit else first} to {second}"


def around(value: float, low: float, high: float, tell: Any) -> str:
    """A number with its interval, without it where it is too narrow to be seen in three digits.

    >>> around(0.0141, 0.0132, 0.0145, seconds), around(19.01e6, 19e6, 19.02e6, bytes_)
    ('14.1 ms (13.2 to 14.5 ms)', '19 MB')
    """
    return tell(value) if tell(low) == tell(high) else f"{tell(value)} ({span(low, high, tell)})"


def join(items: Iterable[str], last: str = "and") -> str:
    """Items as a list in a sentence.

    >>> join(["a"]), join(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    *most, final = items
    return f"{', '.join(most)} {last} {final}" if most else final


def line(row: Mapping[str, Any]) -> str:
    """The configuration of a row: format, engine, gradient, update, what is not on the CPU or kernel by kernel.

    >>> line({"format": "csr", "engine": "ours", "gradient": "row_sparse", "update": "lazy"})
    'CSR ours (row_sparse gradient, lazy update)'
    >>> line({"format": "csr", "engine": "ours", "gradient": "fused", "update": "lazy", "launch": "graph"})
    'CSR ours (fused gradient, lazy update, one graph)'
    >>> line({"format": "dense", "device": "cuda"})
    'dense on cuda'
    """
    place = on_device(row)
    if row["format"] == "dense":
        return f"dense{place}"
    index = ", 64-bit indices" if row.get("index_dtype") == "int64" else ""
    name = f"{_NAMES.get(row['format'], row['format'])} {row['engine']}{place}"
    graph = ", one graph" if row.get("launch") == "graph" else ""
    return f"{name} ({row['gradient']} gradient, {row['update']} update{index}{graph})"


def on_device(row: Mapping[str, Any]) -> str:
    """Where a row was measured, as it ends a name: nothing for the CPU.

    >>> on_device({"device": "cuda"}), on_device({"device": "cpu"})
    (' on cuda', '')
    """
    device = row.get("device")
    return f" on {device}" if device not in (None, "cpu") else ""


def short_line(row: Mapping[str, Any]) -> str:
    """A configuration in words for a legend, where a standard update goes without saying.

    >>> short_line({"format": "csr", "engine": "ours", "gradient": "row_sparse", "update": "lazy"})
    'CSR ours · row_sparse gradient · lazy'
    """
    place = on_device(row)
    if row["format"] == "dense":
        return f"dense{place}"
    index = " · int64" if row.get("index_dtype") == "int64" else ""
    lazy = "" if row["update"] == "standard" else f" · {row['update']}"
    name = f"{_NAMES.get(row['format'], row['format'])} {row['engine']}{place}"
    graph = " · graph" if row.get("launch") == "graph" else ""
    return f"{name} · {row['gradient']} gradient{lazy}{index}{graph}"


def plural(count: int, noun: str) -> str:
    """A count with its noun.

    >>> plural(1, "cell"), plural(3, "cell")
    ('1 cell', '3 cells')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
