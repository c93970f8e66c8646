"""scikit-learn's SGDClassifier on dense and on CSR rows: a step a row, of one output."""

from functools import partial
from typing import Any

from benchmarks.fair.competitors import Candidate, register
from workbench.advising.frameworks.ways.scikit_learn import SklearnTrainer, why_not


def _competitor(kind: str, note: str) -> Candidate:
    """Return the SGDClassifier competitor on rows of a kind, "dense" or "sparse"."""
    make: Any = partial(SklearnTrainer, kind=kind)
    name = f"scikit-learn SGDClassifier, {'CSR' if kind == 'sparse' else 'dense'} rows"
    return Candidate(name, "independent", kind, make, why_not, note=note)


register(_competitor("dense", "checked without its shuffle; tells no losses"))
register(_competitor("sparse", "checked without its shuffle; tells no losses; shorter steps of the intercept"))
