"""Vowpal Wabbit, row by row, from examples in memory: its adaptive, normalised and invariant rule, and FTRL-proximal.

An example is made of a row when it is first learned, and kept for later passes where memory allows; both are timed. A
column number is the place of its weight, so that no two columns share one.
"""

import functools
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from workbench.bench.fit.contract import Contender, Rows, Scorer, Value, grid, one_number, register

INSTALL = "pip install 'sparse-workbench[rivals]'"
RULES = {"adaptive": "--learning_rate {rate}", "ftrl": "--ftrl --ftrl_alpha {rate}"}
"""Options by the name of the rule; the first is its default."""
CONSTANT = 11650396
"""The place of its constant feature, before the bits of the table are taken."""
BYTES_EXAMPLE, BYTES_KEPT = 32_768, 1 << 32
"""Bytes of an example beside those of its entries, and of all that are kept for later passes."""
NAMESPACE = ord("x")


class Learner:
    """A table of weights, and the rows as examples."""

    def __init__(self, rows: Rows, value: Value) -> None:
        import vowpalwabbit

        self.rows, self.bits = rows, max(int(rows.x.shape[1] - 1).bit_length(), 1) + 1
        loss = "squared" if rows.model == "linear" else "logistic"
        rule = RULES[value["rule"]].format(rate=value["rate"])
        constant = "" if rows.has_intercept else "--noconstant"
        self.vw = vowpalwabbit.Workspace(f"--quiet --loss_function {loss} -b {self.bits} {rule} {constant}")
        self.example = functools.partial(vowpalwabbit.Example, self.vw)
        y = rows.y.reshape(-1)
        self.labels = [repr(float(label)) for label in (y if rows.model == "linear" else 2 * y - 1)]
        self.kept: list[Any] = []
        self.keeps = len(self.labels) * BYTES_EXAMPLE <= BYTES_KEPT

    def made(self, start: int, stop: int) -> list[Any]:
        """Examples of rows `start` to `stop`."""
        if len(self.kept) >= stop:
            return self.kept[start:stop]
        x = self.rows.x
        starts = (x.indptr[start : stop + 1] - x.indptr[start]).tolist()
        part = slice(x.indptr[start], x.indptr[stop])
        entries = list(zip(x.indices[part].tolist(), x.data[part].tolist(), strict=True))
        found = []
        for row, (first, last) in enumerate(itertools.pairwise(starts), start):
            example = self.example()
            example.ensure_namespace_exists("x")
            example.push_feature_list(self.vw, NAMESPACE, 0, entries[first:last])
            example.set_label_string(self.labels[row])
            example.setup_example()
            found.append(example)
        self.kept += found if self.keeps else []
        return found

    def scores(self, x: Any) -> np.ndarray:
        """The scores of X csr; of numbers within those that were learned, as its predictions are."""
        weights = np.array([self.vw.get_weight(place, 0) for place in range(x.shape[1])])
        found = x @ weights
        if self.rows.has_intercept:
            found = found + self.vw.get_weight(CONSTANT & ((1 << self.bits) - 1), 0)
        return np.clip(found, self.rows.y.min(), self.rows.y.max()) if self.rows.model == "linear" else found


def steps(rows: Rows, value: Value) -> Iterator[Scorer]:
    """Passes over the rows in their order."""
    learner, count = Learner(rows, value), rows.x.shape[0]
    learn = functools.partial(type(learner.vw).__base__.learn, learner.vw)
    while True:
        for start in range(0, count, rows.rows_point):
            for example in learner.made(start, min(start + rows.rows_point, count)):
                learn(example)
            yield learner.scores


SETTINGS = grid(rule=tuple(RULES), rate=(0.05, 0.15, 0.5, 1.5, 5.0))
register(
    Contender(
        "Vowpal Wabbit",
        "rival",
        ("linear", "logistic"),
        lambda model: SETTINGS,
        steps,
        needs="vowpalwabbit",
        install=INSTALL,
        why_not=one_number,
    )
)
