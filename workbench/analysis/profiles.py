"""The profile of a data set in words: its numbers as lines, and whether it is sparse enough to be worth measuring.

A profile is the nested mapping that `workbench.data.profile` returns and JSON stores.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from workbench.analysis import formatting

WORTH = 2.0
"""Times the bytes of CSR that dense takes from which on a measurement is worth while for the memory alone."""

Fact = tuple[str, tuple[str, ...]]
"""What is told, and its lines."""


def profile_sentence(profile: Mapping[str, Any], bytes_free: int | None = None) -> str:
    """Says what dense would cost against CSR, and whether that is worth measuring; of speed, that only trials tell.

    `bytes_free` is the memory of the machine that dense would have to fit in.
    """
    said, dense = _is_worth_measuring(profile), profile["bytes_format"]["dense"]
    if bytes_free is None or dense <= bytes_free:
        return said
    return f"{said} Dense does not fit here: {formatting.format_bytes(bytes_free)} are free."


def top_columns_sentence(profile: Mapping[str, Any]) -> str:
    """Says what share of the entries the most frequent columns hold."""
    count, share = profile["columns"]["top"], _percent(profile["columns"]["top_share"])
    if count == 1:
        return f"the most frequent column holds {share} of the entries"
    return f"the most frequent {count:,} columns (1 % of those used) hold {share} of the entries"


def _is_worth_measuring(profile: Mapping[str, Any]) -> str:
    """Return the sentence on whether the data is sparse enough for a comparison to be worth while."""
    sizes = profile["bytes_format"]
    dense, sparse = sizes["dense"], sizes["csr"]
    stored = (
        f"{formatting.format_density(profile['density'])} of the elements are stored: dense takes "
        f"{formatting.format_bytes(dense)}"
    )
    against = f"CSR {formatting.format_bytes(sparse)}"
    if dense <= sparse:
        return f"{stored} and {against}, so sparse saves no memory here, and there is little to measure."
    times = f"{formatting.format_number(dense / sparse, 2)} times the {formatting.format_bytes(sparse)} of CSR"
    if dense < WORTH * sparse:
        return f"{stored}, {times}: little memory to save. Whether a step is faster only a measurement tells."
    return f"{stored}, {times}, so it is sparse enough to be worth measuring; how fast a step is, trials tell."


def profile_facts(profile: Mapping[str, Any]) -> list[Fact]:
    """Return all there is to tell, in the order in which it is read."""
    tellers = (_size, _lengths, _columns, _touched, _values, _bytes, _preparations, _duplicates, _labels, _groups)
    told = [(what, tuple(lines)) for what, lines in (teller(profile) for teller in tellers)]
    return [(what, lines) for what, lines in told if lines]


def _size(profile: Mapping[str, Any]) -> tuple[str, Iterator[str]]:
    """Return the title "size" and lines on rows, columns, entries, density and types of a profile."""

    def lines() -> Iterator[str]:
        yield f"{profile['rows']:,} rows x {profile['features']:,} columns"
        yield f"{profile['entries']:,} entries, density {formatting.format_density(profile['density'])}"
        yield f"values {profile['dtype']}, indices {profile['index_dtype']}"

    return "size", lines()


def _lengths(profile: Mapping[str, Any]) -> tuple[str, Iterator[str]]:
    """Return (title, lines) on the entries in a row."""

    def lines() -> Iterator[str]:
        known = profile["lengths"]
        numbers = [
            f"{name} {formatting.format_number(known[key])}" for name, key in (("mean", "mean"), ("median", "median"))
        ]
        numbers += [f"99th percentile {formatting.format_number(known['p99'])}", f"largest {known['most']:,}"]
        yield ", ".join(numbers)
        yield (
            f"standard deviation / mean {formatting.format_number(known['cv'], 2)}; "
            f"{_count(known['empty'], 'empty row')}"
        )

    return "entries a row", lines()


def _columns(profile: Mapping[str, Any]) -> tuple[str, Iterator[str]]:
    """Return (title, lines) on how often columns are used."""

    def lines() -> Iterator[str]:
        known = profile["columns"]
        yield top_columns_sentence(profile)
        yield f"the most frequent one is stored in {_percent(known['most_rows'])} of the rows"
        if known["zipf"]:
            yield f"rows by rank fall as rank to the power of {-known['zipf']['slope']:.2f} (Zipf)"
        yield f"{known['unused']:,} never used"

    return "columns", lines()


def _touched(profile: Mapping[str, Any]) -> tuple[str, Iterator[str]]:
    """Return (title, lines) on the active columns of random batches."""

    def lines() -> Iterator[str]:
        for batch in profile["touched"]:
            share = batch["columns"] / batch["entries"] if batch["entries"] else 0.0
            counts = f"{batch['columns']:,.0f} of {profile['features']:,}, U/z {formatting.format_number(share)}"
            yield f"{_count(batch['batch_rows'], 'random row')}: {counts}"

    return "touched columns, mean", lines()


def _values(profile: Mapping[str, Any]) -> tuple[str, Iterator[str]]:
    """Return (title, lines) on the range of stored values and explicit zeros."""

    def lines() -> Iterator[str]:
        known = profile["values"]
        if known is None:
            return
        least, most = formatting.format_number(known["least"]), formatting.format_number(known["most"])
        yield f"all {least}" if known["least"] == known["most"] else f"{least} to {most}"
        if known["zeros"]:
            yield f"{_count(known['zeros'], 'stored zero')}, which take memory and change nothing"

    return "values", lines()


def _bytes(profile: Mapping[str, Any]) -> tuple[str, Iterator[str]]:
    """Return (title, lines) on the bytes in each format."""
    return "memory", (f"{name} {formatting.format_bytes(size)}" for name, size in profile["bytes_format"].items())


def _preparations(profile: Mapping[str, Any]) -> tuple[str, Iterator[str]]:
    """Return (title, lines) on which preparations keep the data sparse."""

    def lines() -> Iterator[str]:
        for makes_dense, verb in ((True, "made dense by"), (False, "kept sparse by")):
            names = [known["name"] for known in profile["preparations"] if known["is_dense"] == makes_dense]
            sizes = {known["bytes_"] for known in profile["preparations"] if known["is_dense"] == makes_dense}
            yield (
                f"{verb} {formatting.join_items(names)} ({formatting.join_items(map(formatting.format_bytes, sizes))})"
            )

    return "preparation", lines()


def _duplicates(profile: Mapping[str, Any]) -> tuple[str, Iterator[str]]:
    """Return (title, lines) on duplicate entries and rows."""

    def lines() -> Iterator[str]:
        if profile["duplicate_entries"] is not None:
            yield f"{_count(profile['duplicate_entries'], 'entry', 'entries')} summed with another when it was read"
        share = profile["duplicate_rows"] / max(profile["rows"], 1)
        yield f"{_count(profile['duplicate_rows'], 'row')} equal to an earlier one, {_percent(share)}"

    return "duplicates", lines()


def _labels(profile: Mapping[str, Any]) -> tuple[str, Iterator[str]]:
    """Return (title, lines) on the labels: quartiles or class counts."""

    def lines() -> Iterator[str]:
        known, rows = profile["labels"], max(profile["rows"], 1)
        if known["kind"] == "numbers":
            named = zip(("least", "quartile", "median", "quartile", "largest"), known["quartiles"], strict=False)
            yield f"numbers: {', '.join(f'{name} {formatting.format_number(value)}' for name, value in named)}"
            return
        several = f", {formatting.format_number(known['labels_a_row'])} a row" if known["kind"] == "multilabel" else ""
        yield f"{_count(known['classes'], 'class', 'classes')}{several}"
        shown = [f"{name} {_percent(count / rows)}" for name, count in known["shown"]]
        rest = [f"{known['others']:,} others {_percent(known['rows_others'] / rows)}"] if known["others"] else []
        yield ", ".join(shown + rest)

    return "labels", lines()


def _groups(profile: Mapping[str, Any]) -> tuple[str, Iterator[str]]:
    """Return (title, lines) on the groups of rows; no lines without groups."""
    known = profile["groups"]
    return "groups", iter([f"{known[0]:,}, the largest of {_count(known[1], 'row')}"] if known else [])


def _count(count: int, noun: str, several: str = "") -> str:
    """Return a count with its noun, "1 row" or "3 rows"."""
    return f"{count:,} {noun if count == 1 else several or noun + 's'}"


def _percent(share: float) -> str:
    """Return a share as percent text."""
    return formatting.format_density(share)
