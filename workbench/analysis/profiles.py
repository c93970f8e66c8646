"""The profile of a data set in words: its numbers as lines, and whether it is sparse enough to be worth measuring.

A profile is the nested mapping that `workbench.data.profile` returns and JSON stores.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kernels.registry import format_count
from workbench.analysis.formatting import format_bytes, format_density, format_number, join_items

WORTH = 2.0
"""Times the bytes of CSR that dense takes from which on a measurement is worth while for the memory alone."""

Fact = tuple[str, tuple[str, ...]]
"""What is told, and its lines."""


def profile_sentence(profile: Mapping[str, Any], bytes_free: int | None = None) -> str:
    """Return what dense would cost in bytes against CSR, and whether that is worth measuring; speed is not predicted.

    `profile` is the mapping of `workbench.data.profile`; `bytes_free` the memory available to dense, None to skip that.
    """
    said, dense = _is_worth_measuring(profile), profile["bytes_format"]["dense"]
    if bytes_free is None or dense <= bytes_free:
        return said
    return f"{said} Dense does not fit here: {format_bytes(bytes_free)} are free."


def top_columns_sentence(profile: Mapping[str, Any]) -> str:
    """Return the share of the entries in the most frequent columns (1 % of those used) of a profile, as a clause."""
    count, share = profile["columns"]["top"], _percent(profile["columns"]["top_share"])
    if count == 1:
        return f"the most frequent column holds {share} of the entries"
    return f"the most frequent {count:,} columns (1 % of those used) hold {share} of the entries"


def _is_worth_measuring(profile: Mapping[str, Any]) -> str:
    """Return the sentence on whether dense takes enough bytes (twice those of CSR) to be worth measuring."""
    sizes = profile["bytes_format"]
    dense, sparse = sizes["dense"], sizes["csr"]
    stored = f"{format_density(profile['density'])} of the elements are stored: dense takes {format_bytes(dense)}"
    against = f"CSR {format_bytes(sparse)}"
    if dense <= sparse:
        return f"{stored} and {against}, so sparse saves no memory here, and there is little to measure."
    times = f"{format_number(dense / sparse, 2)} times the {format_bytes(sparse)} of CSR"
    if dense < WORTH * sparse:
        return f"{stored}, {times}: little memory to save. Only a measurement shows whether a step is faster."
    return (
        f"{stored}, {times}, so it is sparse enough to be worth measuring. Only a measurement shows how fast a step is."
    )


def profile_facts(profile: Mapping[str, Any]) -> list[Fact]:
    """Return (title, lines of text) per section of a profile, in reading order; empty sections are left out."""
    sections = [(what, tuple(lines(profile))) for what, lines in SECTIONS.items()]
    return [(what, lines) for what, lines in sections if lines]


def _size(profile: Mapping[str, Any]) -> Iterator[str]:
    """Yield rows, columns, entries, density and types of a profile."""
    yield f"{format_count(profile['rows'], 'row')} x {format_count(profile['features'], 'column')}"
    yield f"{format_count(profile['entries'], 'entry')}, density {format_density(profile['density'])}"
    yield f"values {profile['dtype']}, indices {profile['index_dtype']}"


def _lengths(profile: Mapping[str, Any]) -> Iterator[str]:
    """Yield mean, median, 99th percentile, largest, variation and empty rows."""
    known = profile["lengths"]
    numbers = [f"{name} {format_number(known[key])}" for name, key in (("mean", "mean"), ("median", "median"))]
    numbers += [f"99th percentile {format_number(known['p99'])}", f"largest {known['most']:,}"]
    yield ", ".join(numbers)
    yield (f"standard deviation / mean {format_number(known['cv'], 2)}; {_count(known['empty'], 'empty row')}")


def _columns(profile: Mapping[str, Any]) -> Iterator[str]:
    """Yield share of the most frequent columns, Zipf exponent and unused columns."""
    known = profile["columns"]
    yield top_columns_sentence(profile)
    yield f"the most frequent one is stored in {_percent(known['most_rows'])} of the rows"
    if known["zipf"]:
        yield f"frequency falls with rank like rank ** {-known['zipf']['slope']:.2f} (Zipf)"
    yield f"{known['unused']:,} never used"


def _active(profile: Mapping[str, Any]) -> Iterator[str]:
    """Yield active columns of random batches, one line per batch size."""
    for batch in profile["touched"]:
        share = batch["columns"] / batch["entries"] if batch["entries"] else 0.0
        counts = f"{batch['columns']:,.0f} of {profile['features']:,}, {format_number(share)} an entry"
        yield f"{_count(batch['batch_rows'], 'random row')}: {counts}"


def _values(profile: Mapping[str, Any]) -> Iterator[str]:
    """Yield range of the stored values and number of explicit zeros; no lines if unknown."""
    known = profile["values"]
    if known is None:
        return
    least, most = format_number(known["least"]), format_number(known["most"])
    yield f"all {least}" if known["least"] == known["most"] else f"{least} to {most}"
    if known["zeros"]:
        yield f"{_count(known['zeros'], 'stored zero')}, which take memory and change nothing"


def _bytes(profile: Mapping[str, Any]) -> Iterator[str]:
    """Yield the bytes of the data in each storage format, such as "csr 12 MB"."""
    for name, size in profile["bytes_format"].items():
        yield f"{name} {format_bytes(size)}"


def _preparations(profile: Mapping[str, Any]) -> Iterator[str]:
    """Yield which preparations make the data dense and which keep it sparse, with bytes."""
    for makes_dense, verb in ((True, "dense, if prepared by"), (False, "still sparse, if prepared by")):
        names = [known["name"] for known in profile["preparations"] if known["is_dense"] == makes_dense]
        sizes = {known["bytes_"] for known in profile["preparations"] if known["is_dense"] == makes_dense}
        yield (f"{verb} {join_items(names)} ({join_items(map(format_bytes, sizes))})")


def _duplicates(profile: Mapping[str, Any]) -> Iterator[str]:
    """Yield entries summed on reading (if counted) and rows equal to an earlier one."""
    if profile["duplicate_entries"] is not None:
        yield f"{_count(profile['duplicate_entries'], 'entry', 'entries')} summed with another when it was read"
    share = profile["duplicate_rows"] / max(profile["rows"], 1)
    yield f"{_count(profile['duplicate_rows'], 'row')} equal to an earlier one, {_percent(share)}"


def _labels(profile: Mapping[str, Any]) -> Iterator[str]:
    """Yield quartiles of regression targets, or classes with their shares of the rows."""
    known, rows = profile["labels"], max(profile["rows"], 1)
    if known["kind"] == "numbers":
        named = zip(("least", "quartile", "median", "quartile", "largest"), known["quartiles"], strict=False)
        yield f"numbers: {', '.join(f'{name} {format_number(value)}' for name, value in named)}"
        return
    several = f", {format_number(known['labels_a_row'])} a row" if known["kind"] == "multilabel" else ""
    yield f"{_count(known['classes'], 'class', 'classes')}{several}"
    shown = [f"{name} {_percent(count / rows)}" for name, count in known["shown"]]
    rest = [f"{known['others']:,} others {_percent(known['rows_others'] / rows)}"] if known["others"] else []
    yield ", ".join(shown + rest)


def _groups(profile: Mapping[str, Any]) -> Iterator[str]:
    """Yield the number of groups of rows and the largest; nothing without groups."""
    if known := profile["groups"]:
        yield f"{known[0]:,}; the largest has {_count(known[1], 'row')}"


SECTIONS: dict[str, Callable[[Mapping[str, Any]], Iterator[str]]] = {
    "size": _size,
    "entries a row": _lengths,
    "columns": _columns,
    "active columns, mean": _active,
    "values": _values,
    "memory": _bytes,
    "preparation": _preparations,
    "duplicates": _duplicates,
    "labels": _labels,
    "groups": _groups,
}
"""What yields the lines of each section of a profile, in reading order."""


def _count(count: int, noun: str, several: str = "") -> str:
    """Return a count with its noun, such as "1 row" or "3 rows"; `several` is an irregular plural."""
    return f"{count:,} {noun if count == 1 else several or noun + 's'}"


def _percent(share: float) -> str:
    """Return a fraction as per cent with three significant digits, such as "12.5 %"."""
    return format_density(share)
