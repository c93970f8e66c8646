"""Contract of a row-sparse gradient on its way to an optimizer, whatever framework made it."""

from typing import NamedTuple

import numpy as np

from workbench.bridges.contracts import Violation
from workbench.bridges.validation_rules import ERROR

BOUNDARY = "gradient -> optimizer"


class Framework(NamedTuple):
    """Words of a framework: the name of a row-sparse gradient, what sums repeated rows, what it makes of wrong ones."""

    kind: str
    sums: str
    repeated: str
    outside: str


def dense_gradient_violation(name: str, framework: Framework) -> Violation:
    """Return the violation of a gradient that holds every row."""
    came, advice = f"The gradient of {name} is dense", "Take regularizers and dense terms off this weight"
    effect = "every row is stepped, or the optimizer is not lazy, without a word"
    return Violation("sparse", BOUNDARY, ERROR, came, f"{framework.kind}, the touched rows", advice, effect)


def find_row_violations(name: str, rows: np.ndarray, count: int | None, framework: Framework) -> list[Violation]:
    """Violations of a gradient [count, ...] that holds `rows`, int [U]: rows twice, outside, or no count.

    O(U log U).
    """
    found = []
    repeated = rows.size - np.unique(rows).size
    if repeated:
        came = f"The gradient of {name} repeats {repeated} rows"
        found.append(
            Violation("duplicates", BOUNDARY, ERROR, came, "each row once", framework.sums, framework.repeated)
        )
    if count is None:
        came = f"The gradient of {name} does not say how many rows there are"
        found.append(
            Violation("shape", BOUNDARY, ERROR, came, "a dense_shape", "Give IndexedSlices one; Adam needs it")
        )
    elif rows.size and not 0 <= rows.min() <= rows.max() < count:
        came, advice = f"The gradient of {name} names rows outside of the weight", "Check the columns of the batch"
        found.append(Violation("range", BOUNDARY, ERROR, came, f"0 to {count - 1}", advice, framework.outside))
    return found
