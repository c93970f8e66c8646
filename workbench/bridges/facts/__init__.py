"""Facts: what installed libraries do with sparse arrays, one file a library, each fact tested against the library.

How to add a fact: a table in the library's file here, `[name]`, and a function `name` in the file of the same name in
`tests/bridges/probes`, which returns what happens: one of `OUTCOMES`. A library is added by adding both files. A test
runs every probe on the installed release and names the sentence to change if it says otherwise.

A fact with a `rule` is also what `bridges.check` says of a violation of that rule.

>>> fact = of("pytorch")["momentum_of_sparse_gradients"]
>>> fact.outcome, fact.versions
('costly', ('2.7.0', '2.13.0', '2.15.0'))
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kernels.registry import unknown_name

FOLDER = Path(__file__).parent

OUTCOMES = {
    "sparse": "right, and memory follows the stored entries",
    "costly": "right, but takes more memory, time or bytes a value than the stored entries need",
    "densifies": "right, but the result holds every place or row",
    "refuses": "an error comes",
    "wrong": "another result than that of the same numbers in a dense array, or none, and no error comes",
}
"""What may happen, with its meaning."""


@dataclass(frozen=True)
class Fact:
    """One thing that a library does: the operation, what it was given, and the outcome, one of `OUTCOMES`.

    `versions` are the releases on which it was seen, `source` the address of the documentation, issue or source file
    that it follows from, and `cure` says what to type instead. `rule` is the rule of `bridges.check` that warns of it,
    "" if there is none. `since` is the first release of which it is stated if lower ones do something else, else "";
    `until` is the first of the newer releases that do something else, "" if none was seen to.
    """

    library: str
    name: str
    operation: str
    format: str
    dtype: str
    index: str
    outcome: str
    sentence: str
    cure: str
    versions: tuple[str, ...]
    source: str
    rule: str = ""
    since: str = ""
    until: str = ""


@dataclass(frozen=True)
class Library:
    """A library with its facts by name: its name in sentences, the distribution and the modules that probes import."""

    title: str
    distribution: str
    modules: tuple[str, ...]
    facts: Mapping[str, Fact]


@cache
def libraries() -> dict[str, Library]:
    """Return every library by the name of its file, in alphabetical order; read once."""
    return {path.stem: _read(path) for path in sorted(FOLDER.glob("*.toml"))}


def of(library: str) -> Mapping[str, Fact]:
    """Return the facts of a library by name. Raises ValueError, with the known libraries, for an unknown one."""
    if library not in libraries():
        raise ValueError(unknown_name("library", library, libraries()))
    return libraries()[library].facts


@cache
def effects(rule: str) -> dict[str, str]:
    """Return what each framework does where a rule of `bridges.check` is violated; {} if nothing is known."""
    found: dict[str, list[str]] = {}
    for name, library in libraries().items():
        for fact in library.facts.values():
            if fact.rule == rule:
                found.setdefault(name, []).append(fact.sentence.removesuffix("."))
    return {name: "; ".join(sentences) for name, sentences in found.items()}


def _read(path: Path) -> Library:
    """Return the library of a file. Raises TypeError for a fact with an unknown key, or without a required one."""
    table: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    facts = {}
    for name, fields in table["facts"].items():
        shared = {"versions": table["versions"], "format": "any", "dtype": "any", "index": "any"} | fields
        facts[name] = Fact(**{**shared, "library": path.stem, "name": name, "versions": tuple(shared["versions"])})
    return Library(table["title"], table["distribution"], tuple(table["modules"]), facts)
