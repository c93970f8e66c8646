"""The page of facts about libraries, made from `workbench/bridges/facts`."""

from collections.abc import Iterable

from packaging.version import Version

from workbench.bridges import facts

ORDER = ("wrong", "densifies", "costly", "refuses", "sparse")
"""Outcomes in the order of the page: what hurts most, first."""

HEAD = """# What a good engineer guesses wrong

What {count} operations of {libraries} libraries do with sparse arrays, as the releases named here do it: the lowest
that is looked at, that of the tests, and the newest. Each line has a probe, a few lines of Python that show it. A test
runs every probe on the installed release: if that does something else, it fails and names the sentence to change. The
page is made from `workbench/bridges/facts`, one file a library.

{outcomes}

`workbench check FILE --for pytorch` warns of those that data alone shows, and `bridges.check(x, for_="pytorch")` of
tensors, sparse frames and matrices in memory; `bridges.pytorch.check_optimizer` checks optimizers, and
`bridges.keras.check_model` models.
"""
COLUMNS = ("operation", "what happens", "what to type")


def page() -> str:
    """Return the page: a section a library, a row a fact, each with its version, its source and its probe."""
    libraries = facts.libraries()
    count = sum(len(library.facts) for library in libraries.values())
    outcomes = "\n".join(f"- **{name}**: {facts.OUTCOMES[name]}" for name in ORDER)
    parts = [HEAD.format(count=count, libraries=len(libraries), outcomes=outcomes)]
    for name in sorted(libraries, key=lambda name: (-len(libraries[name].facts), name)):
        library = libraries[name]
        versions = sorted({version for fact in library.facts.values() for version in fact.versions}, key=Version)
        parts.append(f"## {library.title} {', '.join(versions)}\n")
        parts.append(f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|")
        parts.append("\n".join(_rows(name, library.facts.values())) + "\n")
    return "\n".join(parts)


def _rows(library: str, of_library: Iterable[facts.Fact]) -> Iterable[str]:
    """Yield a line of the table for each fact, those that hurt most first."""
    for fact in sorted(of_library, key=lambda fact: ORDER.index(fact.outcome)):
        given = ", ".join(part for part in (fact.format, fact.dtype, fact.index) if part != "any")
        otherwise = " The lowest releases that are supported do something else." if fact.since else ""
        otherwise += f" Releases from {fact.until} on do something else." if fact.until else ""
        links = f"[source]({fact.source}), [probe `{fact.name}`](../../tests/bridges/probes/{library}.py)"
        operation = f"`{fact.operation}`" + (f", {given}" if given else "")
        cells = (operation, f"**{fact.outcome}**: {fact.sentence}.{otherwise}", f"{fact.cure} ({links})")
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
