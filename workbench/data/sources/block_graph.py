"""A synthetic graph of nodes with classes: edges join nodes of one class more often, features hint at the class.

The edges are those of a stochastic block model (Holland, Laskey and Leinhardt 1983), features are words of a text: a
node has some of its class's own words and some of all words. A model of the features alone sees one noisy hint; a model
that also sees the neighbours' features sees many.
"""

import numpy as np

from workbench.data.contract import Source, register
from workbench.data.dataset.record import Dataset, graph_of
from workbench.data.errors import DataError
from workbench.data.labels import Labels
from workbench.data.synthetic import LICENCE, ORIGIN, require_at_least
from workbench.formats.compressed import assemble, index_dtype


def make(
    rows: int = 2000,
    features: int = 1000,
    classes: int = 5,
    degree: float = 8.0,
    mixing: float = 0.2,
    words: int = 20,
    signal: float = 0.1,
    per_class: int | None = None,
    seed: int = 0,
) -> Dataset:
    """Return a synthetic graph: `rows` nodes in `classes` of equal size, about `degree` edges each.

    X has `words` ones a row. An edge joins a node with any other one with the chance `mixing`, else with one of its own
    class. A word is one of the class's own with the chance `signal`, else any: the columns are dealt out to the classes
    in equal parts. Words and edges that come twice count once. `per_class` nodes of each class are trained on, where
    rows are held out; None for the usual share. Raises DataError for parameters out of range. O(rows * (words + degree)
    log).
    """
    _check(rows, features, classes, degree, words, {"mixing": mixing, "signal": signal})
    generator = np.random.default_rng(seed)
    y = generator.permutation(np.arange(rows) % classes)
    columns = _words(y, features, classes, words, signal, generator)
    keys = np.unique(np.repeat(np.arange(rows), words) * features + columns)
    dtype = index_dtype(rows, features, len(keys))
    indptr = np.searchsorted(keys, np.arange(rows + 1) * features).astype(dtype)
    indices, data = (keys % features).astype(dtype), np.ones(len(keys), np.float32)
    x = assemble("csr", indptr, indices, data, (rows, features))
    ends = _ends(y, classes, round(rows * degree / 2), mixing, generator)
    graph = graph_of(ends, np.ones(len(ends[0])), rows, directed=False)
    labels = Labels("classes", tuple(map(str, range(classes))))
    facts = {"degree": graph.nnz / rows, "trained_per_class": per_class}
    return Dataset("block_graph", x, y.astype(np.int64), labels, ORIGIN, LICENCE, facts=facts, graph=graph)


def _check(rows: int, features: int, classes: int, degree: float, words: int, shares: dict[str, float]) -> None:
    """Raise DataError for the first parameter of the graph that is out of range.

    `shares` maps names to probabilities.
    """
    require_at_least(2, classes=classes)
    require_at_least(1, words=words)
    require_at_least(0, degree=degree)
    for name, value in {"rows": rows, "features": features}.items():
        if value < classes:
            raise DataError(f"{name} is {value}; with {classes} classes it is {classes} or more.")
    for name, share in shares.items():
        if not 0 <= share <= 1:
            raise DataError(f"{name} is {share}; it is a chance, from 0 to 1.")


def _words(
    y: np.ndarray, features: int, classes: int, words: int, signal: float, generator: np.random.Generator
) -> np.ndarray:
    """Return the random columns of the words of each node, int64 [rows * words], node after node.

    `y` is the class index.
    """
    first = np.arange(classes + 1) * features // classes
    of_class = np.repeat(y, words)
    own = generator.integers(first[of_class], first[of_class + 1])
    return np.where(generator.random(len(own)) < signal, own, generator.integers(0, features, len(own)))


def _ends(
    y: np.ndarray, classes: int, count: int, mixing: float, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return (first nodes, second nodes) of about `count` random edges, int64 each; loops are left out."""
    by_class, sizes = np.argsort(y, kind="stable"), np.bincount(y, minlength=classes)
    starts = np.cumsum(sizes) - sizes
    one = generator.integers(0, len(y), count)
    own = by_class[starts[y[one]] + generator.integers(0, sizes[y[one]])]
    other = np.where(generator.random(count) < mixing, generator.integers(0, len(y), count), own)
    return one[one != other], other[one != other]


register(Source("block_graph", make, ORIGIN, LICENCE, gives=("graph",)))
