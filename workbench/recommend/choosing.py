"""Regularization and confidence of als that were not given: those of the best recall on entries held out.

Their best values differ by four powers of ten between data sets, and a usual value may recommend no better than
always the most popular items do. A few iterations each, on nine tenths of every user's entries, tell them apart.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from workbench.data.errors import DataError

FEWEST = 2_000
"""Entries below which a tenth of them tells nothing: the usual values are taken."""
USUAL = 0.01
"""Regularization without a choice, as in the library implicit."""
DECADES = (10.0, 1.0, 100.0)
"""Regularizations that are tried; then the two halfway, on a logarithmic scale, to the next ones of the best."""
ITERATIONS = 3
"""Iterations of each try."""


class Chosen(NamedTuple):
    """Regularization and confidence that als trains with."""

    regularization: float
    confidence: str


def choose(score: Callable[[Chosen], float], regularization: float | None, confidences: tuple[str, ...]) -> Chosen:
    """Return the regularization, unless it is given, and one of the confidences with the highest score.

    `score` trains and says how good that is. The confidence is chosen first, with the given regularization or the first
    of `DECADES`.

    >>> choose(lambda one: -abs(np.log10(one.regularization / 40)) - (one.confidence == "linear"), None,
    ... ("linear", "log"))
    Chosen(regularization=31.622776601683793, confidence='log')
    """
    scores: dict[Chosen, float] = {}

    def best_of(tried: list[Chosen]) -> Chosen:
        """Return the best of what was tried, these included; one that overflows is the worst."""
        for one in tried:
            if one not in scores:
                try:
                    scores[one] = score(one)
                except DataError:
                    scores[one] = -np.inf
        return max(scores, key=lambda one: scores[one])

    first = DECADES[0] if regularization is None else regularization
    best = Chosen(first, confidences[0])
    if len(confidences) > 1:
        best = best_of([Chosen(first, confidence) for confidence in confidences])
    if regularization is not None:
        return best
    best = best_of([best._replace(regularization=value) for value in DECADES])
    return best_of([best._replace(regularization=best.regularization * factor) for factor in (10**-0.5, 10**0.5)])


def confidences_for(values: Any) -> tuple[str, ...]:
    """Return the confidences that differ for these values [entries]: of equal ones, one."""
    return ("linear", "log") if values.size and values.min() < values.max() else ("linear",)
