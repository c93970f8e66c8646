"""A training that takes rows as they come and stands between calls: what an estimator with `partial_fit` is made of."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, final

import numpy as np
import scipy.sparse

from workbench import formats, models
from workbench.models import Model
from workbench.train import Run, Setup


@final
class Learner:
    """Parameters of a model, an optimizer with its states, and how many epochs and rows have passed.

    `setup` says how to train, in csr on cpu; `features` is D, `width` N. It can be pickled, with all that further
    training depends on.
    """

    def __init__(self, setup: Setup, features: int, width: int) -> None:
        self.setup, self.features, self.width = setup, features, width
        self.epoch = 0
        self.run = self._new_run()

    def _new_run(self) -> Run:
        """A training that waits for its rows."""
        return Run(self.setup, *self._no_rows(), self.width)

    def _no_rows(self) -> tuple[Any, np.ndarray]:
        """Stand-in for rows between calls: one row without entries, and its target."""
        x = scipy.sparse.csr_array((1, self.features), dtype=self.dtype)
        if self.model.target == "classes":
            return x, np.zeros(1, np.int64)
        return x, np.zeros((1, self.model.outputs or self.width), self.dtype)

    @property
    def model(self) -> Model:
        """The model that is trained."""
        return models.get(self.setup.model)

    @property
    def dtype(self) -> np.dtype:
        """Type of the parameters."""
        return np.dtype(self.setup.dtype)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The parameters by name, up to date: the arrays themselves."""
        self.run.catch_up()
        return self.run.arrays

    def epochs(self, x: Any, y: np.ndarray, weights: np.ndarray | None, most: int) -> Iterator[float]:
        """Train on csr x [R, D], its targets y and weights [R], for `most` epochs; gives the mean loss of each."""
        if self.setup.launch == "dual" and self.epoch:
            raise ValueError("Dual ascent trains on all rows at once: call fit with them, or leave launch out.")
        self.run.take(x, y, weights)
        try:
            for _ in range(most):
                losses = [(event.loss, event.rows) for event in self.run.epoch(self.epoch)]
                self.epoch += 1
                yield sum(loss * rows for loss, rows in losses) / sum(rows for _, rows in losses)
        finally:
            self.run.take(*self._no_rows())  # the caller's rows are not kept

    def scores(self, x: Any) -> np.ndarray:
        """Scores [R, outputs] of x [R, D], csr or dense, made sparse a batch at a time."""
        return self.run.predict(x)

    def __getstate__(self) -> dict[str, Any]:
        self.run.catch_up()
        known = {"setup": replace(self.setup, options=dict(self.setup.options)), "epoch": self.epoch}
        sizes = {"features": self.features, "width": self.width}
        return known | sizes | {"run": self.run.state_dict()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.setup, self.epoch = state["setup"], state["epoch"]
        self.features, self.width = state["features"], state["width"]
        self.run = self._new_run()
        self.run.load_state_dict(state["run"])


def as_csr(x: Any, dtype: np.dtype) -> scipy.sparse.csr_array:
    """x as csr of that type with indices of one width; dense arrays lose their zeros. Shares memory where it can."""
    if isinstance(x, np.ndarray):
        return formats.to_format(np.ascontiguousarray(x, dtype), "csr")
    if x.indptr.dtype != x.indices.dtype:
        wide = np.promote_types(x.indptr.dtype, x.indices.dtype)
        parts = x.data, x.indices.astype(wide, copy=False), x.indptr.astype(wide, copy=False)
        x = formats.get("csr").build(dict(zip(("data", "indices", "indptr"), parts, strict=True)), x.shape)
    return formats.astype(x, dtype, copy=False)
