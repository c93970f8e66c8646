"""A training that takes rows call by call, as estimators do: scaling, epochs, and its state for pickle."""

import copy
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, final

import numpy as np
import scipy.sparse

from workbench import formats, models
from workbench.formats.compressed import assemble, index_dtype
from workbench.formats.files import bytes_memory
from workbench.models.scaling import Scaling, has_penalty, linear_scaling, pair_scaling
from workbench.training import Run, Setup


@final
class Learner:
    """Parameters of a model, an optimizer with its states, and how many epochs and rows have passed.

    `setup` says how to train, on cpu; `features` is D, `width` N. It can be pickled, with all that training needs.
    """

    def __init__(self, setup: Setup, features: int, width: int, scaling: Scaling | None = None) -> None:
        """Begin with new parameters and no epochs. Raises SetupError if the model cannot be trained as `setup` says."""
        self.setup, self.features, self.width = setup, features, width
        self.epoch = 0
        self.scaling = scaling
        """How rows and targets are shifted and scaled in the training, as the first ones tell; None before these."""
        self.run = self._new_run()

    def _new_run(self) -> Run:
        """Return a training that waits for its rows; note the batches of the stand-in that it holds until then."""
        self.model = models.get(self.setup.model)
        run = Run(self.setup, *self._stand_in(), self.width)
        self._waiting = run.batches
        return run

    def _stand_in(self) -> tuple[Any, np.ndarray]:
        """Return a stand-in for rows between calls: one csr row [1, D] without entries, and its target of zeros."""
        dtype = index_dtype(self.features)
        x = assemble("csr", np.zeros(2, dtype), np.zeros(0, dtype), np.zeros(0, self.dtype), (1, self.features))
        if self.model.target == "classes":
            return x, np.zeros(1, np.int64)
        return x, np.zeros((1, self.model.outputs or self.width), self.dtype)

    @property
    def dtype(self) -> np.dtype:
        """Return the dtype of the trained parameters."""
        return np.dtype(self.setup.dtype)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """Return the parameters by name, the arrays themselves, after lazily updated rows have caught up."""
        self.run.catch_up()
        return self.run.arrays

    def epochs(
        self, x: Any, y: np.ndarray, weights: np.ndarray | None, most: int, at_once: int = 1, passes: int = 1
    ) -> Iterator[float]:
        """Train on x [R, D] of `as_trained`, targets y, weights [R] or None, for `most` epochs; yield each mean loss.

        Losses come after up to `at_once` epochs, of `passes` > 1 steps of all rows each. ValueError for dual twice.
        """
        if self.setup.execution == "dual" and self.epoch:
            raise ValueError("Dual ascent trains on all rows at once: call fit with them, or leave execution out.")
        self.run.take(x, y, weights)
        try:
            if self.run.calls is not None:
                for loss in self.run.calls.losses_of_epochs(self.epoch, most, at_once, passes):
                    self.epoch += 1
                    yield loss
                return
            for _ in range(most):
                losses = [(one.loss, one.rows) for _ in range(passes) for one in self.run.epoch(self.epoch)]
                self.epoch += 1
                yield sum(loss * rows for loss, rows in losses) / sum(rows for _, rows in losses)
        finally:
            self.run.hold_batches(self._waiting)  # the caller's rows are not kept

    @property
    def loss_unit(self) -> float:
        """Factor of losses of scaled targets that makes them those of the targets as they came."""
        return 1.0 if self.scaling is None else float(np.mean(np.square(self.scaling.target_scale)))

    @contextmanager
    def scaled(self, x: Any, y: np.ndarray, weights: np.ndarray | None) -> Iterator[tuple[Any, np.ndarray]]:
        """Give x and y as the model is trained on them, with its parameters for these within the context.

        `weights` [R] are those of the rows, or None.
        """
        is_first, is_number = not (self.epoch or self.run.step), self.model.target == "numbers"
        if self.scaling is None:
            self.scaling = scaling_of(self.setup, x, y, weights)
        elif is_first and is_number and self.model.enter_scaling:  # it knows columns, and targets now
            self.scaling.take_targets_of_pairs(y, weights, self.setup.has_intercept)
        enter_scaling(self.run, self.scaling, is_first)
        if self.model.enter_scaling and self.scaling.scale is not None:
            self.scaling.add_columns(x, weights)
        y = self.scaling.targets(y, self.dtype) if is_number else y
        try:
            yield self.scaling.rows(x), y
        finally:
            leave_scaling(self.run, self.scaling)

    def require_finite(self, x: Any, is_whole: bool) -> None:
        """Raise ValueError if trained weights are not finite: all are checked after a whole training on x.

        After a part of one, only arrays no larger than x are, so that the check costs no more than the step.
        """
        for name, array in self.run.arrays.items():
            if (is_whole or array.size <= x.size) and not np.isfinite(array).all():
                count = int(np.count_nonzero(~np.isfinite(array)))
                raise ValueError(
                    f"Training diverged: {count:,} of {array.size:,} weights in {name!r} are NaN or infinite.\n"
                    "Scale the values, as sklearn.preprocessing.MaxAbsScaler does, or lower learning_rate."
                )

    def scores(self, x: Any) -> np.ndarray:
        """Return scores [R, outputs] of x [R, D], csr or dense, made sparse a batch at a time."""
        return self.run.predict(x)

    def go_on_as(self, setup: Setup) -> None:
        """Train as another setup says from now on, from the same parameters and states.

        Raises ValueError, with nothing changed, if the states do not suit it.
        """
        is_scaled = self.model.is_product and self.scaling is not None and self.scaling.scale is not None
        if is_scaled and has_penalty(setup.options):
            raise ValueError("It has scaled the columns, which differ by far, and a penalty is on weights as they are.")
        state, updater = self.__getstate__(), self.run.updater
        try:
            if setup.optimizer == self.setup.optimizer:  # under a new decay rows may catch up in another way
                updater.options = updater.optimizer.resolve(setup.options)
                updater.obey()
            self.__setstate__(self.__getstate__() | {"setup": setup})
        except ValueError:
            self.__setstate__(state)
            raise

    def __getstate__(self) -> dict[str, Any]:
        """Return setup, epoch, sizes and the state of the training, for pickle, after all rows have caught up."""
        self.run.catch_up()
        known = {"setup": replace(self.setup, options=dict(self.setup.options)), "epoch": self.epoch}
        sizes = {"features": self.features, "width": self.width}
        return known | sizes | {"run": self.run.state_dict(), "scaling": copy.deepcopy(self.scaling)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make the training anew from what `__getstate__` returned; its next steps are the same as without."""
        self.setup, self.epoch, self.scaling = state["setup"], state["epoch"], state.get("scaling")
        self.features, self.width = state["features"], state["width"]
        self.run = self._new_run()
        self.run.load_state_dict(state["run"])


def scaling_of(setup: Setup, x: Any, y: np.ndarray, weights: np.ndarray | None) -> Scaling:
    """Return how rows x [R, D], csr or dense, and targets y are trained; `weights` [R] are those of the rows, or None.

    Columns of a linear model are not scaled if a penalty of weights would become another one, nor is data that is
    stored in a narrower type, which holds numbers as they are.
    """
    model, has_intercept = models.get(setup.model), setup.has_intercept
    if setup.storage not in ("same", "csr") or not (model.enter_scaling or model.is_product):
        return Scaling()
    if model.enter_scaling:
        scaling = pair_scaling(x, weights, has_intercept=has_intercept)
        if model.target == "numbers":
            scaling.take_targets_of_pairs(y, weights, has_intercept)
        return scaling
    given = {"has_intercept": has_intercept, "scales": not has_penalty(setup.options), "for_steps": True}
    return linear_scaling(x, y, weights, model.loss, **given).with_targets_as_they_are()


def enter_scaling(run: Run, scaling: Scaling, is_first: bool) -> None:
    """Change parameters to those for scaled rows and targets, in place.

    Those of a linear model are 0 of either before its first epoch (`is_first`).
    """
    if run.model.enter_scaling:
        run.model.enter_scaling(run.arrays, scaling)
    elif not scaling.is_plain and not is_first:
        point = scaling.inside(run.point)
        run.set_weights(point[:-1], point[-1])


def leave_scaling(run: Run, scaling: Scaling) -> None:
    """Change parameters to those for rows and targets as they came, in place, after all rows have caught up."""
    if scaling.is_plain:
        return
    run.catch_up()
    with np.errstate(all="ignore"):  # what has diverged is refused
        if run.model.leave_scaling:
            run.model.leave_scaling(run.arrays, scaling)
        else:
            point = scaling.outside(run.point)
            run.set_weights(point[:-1], point[-1])


def as_csr(x: Any, dtype: np.dtype) -> scipy.sparse.csr_array:
    """Return x as csr of that dtype, indices of one width, memory shared where it can be; dense zeros are dropped."""
    if isinstance(x, np.ndarray):
        return formats.to_format(np.ascontiguousarray(x, dtype), "csr")
    return formats.astype(with_one_width(x), dtype, copy=False)


def with_one_width(x: Any) -> Any:
    """Return csr or csc `x` with indptr and indices of one dtype, the wider one; itself if they are."""
    if x.indptr.dtype == x.indices.dtype:
        return x
    wide = np.promote_types(x.indptr.dtype, x.indices.dtype)
    parts = x.data, x.indices.astype(wide, copy=False), x.indptr.astype(wide, copy=False)
    return formats.get(x.format).build(dict(zip(("data", "indices", "indptr"), parts, strict=True)), x.shape)


def as_trained(x: Any, setup: Setup) -> Any:
    """Return x as training uses it: for format "dense" and storage "same" a dense C array, else csr or dense as x is.

    Of the setup's dtype; memory is shared if nothing changes. Raises ValueError if dense rows exceed the memory.
    """
    dtype = np.dtype(setup.dtype)
    if setup.format == "dense" and isinstance(x, np.ndarray):
        return np.ascontiguousarray(x, dtype)
    if setup.format != "dense" or setup.storage != "same":
        return as_csr(x, dtype)
    if (size := math.prod(x.shape) * dtype.itemsize) > bytes_memory():
        raise ValueError(
            f"X as a dense array takes {size / 2**30:,.0f} GiB, more than this machine has.\n"
            'Give storage="csr", which makes each batch dense, or format="csr".'
        )
    return formats.to_format(as_csr(x, dtype), "dense")
