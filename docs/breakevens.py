"""The page of break-evens in other libraries, made from what the package shows to users of frameworks."""

from workbench.advising.breakevens import measurement

HEAD = """# From which density on dense is faster in other libraries

Each operation was done by the library's own means on a sparse X and on the same X as a dense array, both in their form
already, by {where}.
Places of entries are random and uniform, values float32. `workbench advise FILE --for pytorch` says the same of one
framework below its own answer, and `wb.advise(X, y, framework="pytorch").breakevens` is its table.

**This is not your data.** Another shape, structure or machine has another break-even: `workbench advise` and
`workbench sweep` measure yours. Times, methods and all details are in the
[record](../results/pages/{machine}/bench-libraries.md).
"""
COLUMNS = ("operation", "release", "X", "break-even", "other differences")


def page() -> str:
    """Return the page: a section a library, a row an operation."""
    measured = measurement()
    parts = [HEAD.format(where=measured.where, machine=measured.machine)]
    for library in dict.fromkeys(one.library for one in measured.operations):
        parts.append(f"## {library}\n")
        parts.append(f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|")
        cells = ((one.operation, one.version, one.shape, one.text, one.note) for one in measured.of(library).operations)
        parts.append("\n".join(f"| {' | '.join(row)} |" for row in cells) + "\n")
    return "\n".join(parts)
