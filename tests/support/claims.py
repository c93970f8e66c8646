"""Reads what a report, a chart or a panel says: numbers with their units, and words that name a winner.

A number is read with the digits that it was written with, so that it is right where the value rounds to it.
"""

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html.parser import HTMLParser

SCALES = {
    "time": {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9},
    "bytes": {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "MiB": 2**20},
    "share": {"%": 0.01},
    "factor": {"times": 1.0},
}
KINDS = {unit: kind for kind, units in SCALES.items() for unit in units}
UNIT = "|".join(sorted(KINDS, key=len, reverse=True))
WORD = r"[A-Za-z_]+"
NUMBER = re.compile(
    rf"(?<![\w.\-])(?P<number>\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?)(?![\w.]*\d)"
    rf"(?:[ \u00a0](?:(?P<unit>{UNIT})(?!\w)|(?P<to>to (?=\d))|(?P<noun>{WORD})))?"
)
TO = re.compile(r" to \d")
WINNER = re.compile(
    r"\b(beats?|beaten|wins?|won|faster|less memory|go sparse|stay dense|instead of|probably)\b", re.IGNORECASE
)
LIKELY = re.compile(r"\b(?:is|needs) probably (?:faster|less memory)|\bprobably (?:sparse|dense)", re.IGNORECASE)
"""Words that name a likely side, which is no winner."""
AMOUNT = r"\d[\d,]*(?:\.\d+)?"
ESTIMATE = re.compile(rf"({AMOUNT}) \(95 %: ({AMOUNT}(?: to {AMOUNT})?)\) times")
SPAN = re.compile(
    rf"(no difference that matters \(|inconclusive: dense takes |the same memory \()({AMOUNT}(?: to {AMOUNT})?)",
    re.IGNORECASE,
)
"""Factors without their unit: an estimate before its interval, and an interval alone."""


@dataclass(frozen=True)
class Number:
    """A number in a text: its value in the base unit, half a unit of its last digit, and what it counts or measures.

    `kind` is time, bytes, share, factor, or count with the `noun` that follows; `is_end` marks an end of a range.
    """

    text: str
    value: float
    half: float
    kind: str
    noun: str = ""
    is_end: bool = False

    def is_of(self, value: float) -> bool:
        """Whether the value rounds to it."""
        return abs(value - self.value) <= self.half * (1 + 1e-9) + 1e-12 * abs(value)


def numbers(text: str) -> list[Number]:
    """All numbers of a text; of "13 to 14 ms" both in milliseconds."""
    found, waiting = [], []
    text = SPAN.sub(r"\1\2 times", ESTIMATE.sub(r"\1 times (\2 times)", text))
    for match in NUMBER.finditer(text):
        if match["to"]:
            waiting.append(match["number"])
            continue
        unit = match["unit"]
        group = [*waiting, match["number"]]
        waiting = []
        is_end = len(group) > 1 or bool(TO.match(text, match.end())) or text[: match.start()].endswith(" to ")
        found += [_number(one, unit, match["noun"] or "", is_end) for one in group]
    return found + [_number(one, None, "", True) for one in waiting]


def _number(text: str, unit: str | None, noun: str, is_end: bool) -> Number:
    kind = KINDS[unit] if unit else "count"
    scale = SCALES[kind][unit] if unit else 1.0
    value = float(text.replace(",", ""))
    return Number(
        f"{text} {unit or noun}".strip(), value * scale, _half(text, is_end or not unit) * scale, kind, noun, is_end
    )


def _half(text: str, few: bool) -> float:
    """Half a unit of the last digit that says something: at least two digits do, unless `few`."""
    mantissa, _, exponent = text.replace(",", "").partition("e")
    whole, _, part = mantissa.partition(".")
    last = -len(part) if part else len(whole) - len(whole.rstrip("0")) if whole.strip("0") else 0
    value = float(mantissa)
    if not few and value:
        last = min(last, math.floor(math.log10(abs(value))) - 1)
    return 0.5 * 10.0 ** (last + int(exponent or 0))


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text: a point, a space and a capital end one."""
    yield from (part.strip() for part in re.split(r"(?<=[.;!?]) (?=[A-Z])|\n", text) if part.strip())


def without(text: str, names: Iterable[str]) -> str:
    """The text without these names, the longest first: numbers in a name are none."""
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(name, "NAME")
    return text


class Blocks(HTMLParser):
    """The blocks of text of a page in reading order, and its tables as rows of cells under their captions."""

    BLOCKS = frozenset({"p", "li", "figcaption", "title", "desc", "summary", "h1", "h2", "h3", "th", "td", "caption"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.blocks: list[tuple[str, str]] = []
        self.tables: list[tuple[str, list[list[str]]]] = []
        self._open: list[str] = []
        self._words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open a block, or a table or a row of one."""
        if tag == "table":
            self.tables.append(("", []))
        if tag == "tr":
            self.tables[-1][1].append([])
        if tag in self.BLOCKS:
            self._open.append(tag)
            self._words = []

    def handle_data(self, data: str) -> None:
        """Text inside a block."""
        if self._open:
            self._words.append(data)

    def handle_endtag(self, tag: str) -> None:
        """Close a block: a cell of a table goes into its row."""
        if not self._open or tag != self._open[-1]:
            return
        self._open.pop()
        text = " ".join("".join(self._words).replace("\u00a0", " ").split())
        if tag in ("th", "td"):
            self.tables[-1][1][-1].append(text)
        elif tag == "caption":
            self.tables[-1] = (text, self.tables[-1][1])
        else:
            self.blocks.append((tag, text))


def markdown_tables(text: str) -> list[list[list[str]]]:
    """The tables of a Markdown text: rows of cells, without the line under the head."""
    tables: list[list[list[str]]] = [[]]
    for line in text.splitlines():
        if line.startswith("|"):
            row = [cell.strip() for cell in line.strip("|").split(" | ")]
            tables[-1] += [] if set(line) <= set("|- ") else [row]
        elif tables[-1]:
            tables.append([])
    return [table for table in tables if table]
