"""Base of estimators with scikit-learn's interface: parameters, how these become a setup, epochs, early stopping."""

import os
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, Self

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import validate_parameter_constraints
from sklearn.utils.validation import check_array, check_is_fitted, check_X_y, validate_data

from workbench import formats
from workbench.bridges.sklearn_inputs import (
    CSR,
    are_finite,
    canonical,
    float_types,
    is_plain,
    is_plain_target,
    refuse_masked,
    refuse_path,
    sound,
    with_weights,
)
from workbench.formats.arrays import computed, dense_target, has_sparse_columns
from workbench.models import Model
from workbench.models.scaling import FARTHEST, needs_float64, pair_scaling
from workbench.option_text import read_options
from workbench.training import Setup, constant
from workbench.training.descent import MOST_PASSES
from workbench.training.l1 import COUNT as ALPHAS
from workbench.training.l1 import MOST_SWEEPS, TOLERANCE, fit_l1
from workbench.training.learner import Learner, as_csr, as_trained
from workbench.training.search import (
    COUNT,
    FEWEST_ROWS,
    LEAST_ROWS,
    Choice,
    Found,
    find_minimum,
    is_small,
    search_decay,
    why_no_search,
)
from workbench.training.setup import LAZY, SetupError, complete_settings, impossible_reason, with_epoch_calls
from workbench.watching import losses_times, tell

UPDATES = {lazy: update for update, lazy in LAZY.items()}
"""The update of a setup by the word of the optimizers."""

MOST_SCORED = 20_000
"""Rows, evenly spread, that tell whether a training ended worse than a prediction that ignores X, or twice as many."""
MOST_ASCENT = 20
"""Epochs of dual ascent at most, before Newton's method goes on: it is faster at first, and may then hardly move."""

MOST_ROWS, LEAST_STEPS = 256, 8
"""Rows of a batch if `batch_rows` is None, and steps of an epoch at least; up to so many rows are one batch."""

SHARED: dict[str, Any] = {
    "search": "auto",
    "optimizer": None,
    "learning_rate": None,
    "alpha": None,
    "options": None,
    "model_options": None,
    "lazy": "on",
    "format": "csr",
    "storage": "same",
    "execution": None,
    "batch_rows": None,
    "max_iter": None,
    "shuffle": True,
    "random_state": None,
    "fit_intercept": True,
    "early_stopping": False,
    "validation_fraction": 0.1,
    "n_iter_no_change": 5,
    "tol": None,
}
"""Parameters that every estimator has, with their defaults."""

MOST_EPOCHS = 20
"""Passes over the data if `max_iter` is None and an optimizer trains."""
UNSEARCHED = {"optimizer": "adagrad", "alpha": 0.0, "max_iter": MOST_EPOCHS, "tol": 1e-3}
"""Values of parameters that are None when nothing is searched."""

NO_SEARCH = (
    *("optimizer", "learning_rate", "alpha", "options", "lazy", "format", "execution", "batch_rows"),
    *("shuffle", "early_stopping"),
)
"""Parameters of how to train: if one is set, it is done as set; a search is refused."""

HOW_TO_TRAIN = (
    *(
        "model",
        "model_options",
        "width",
        "factors",
        "fit_intercept",
        "optimizer",
        "lazy",
        "format",
        "storage",
        "execution",
    ),
    *("learning_rate", "alpha", "options", "batch_rows", "shuffle", "random_state"),
)
"""Parameters that a call of `partial_fit` trains by, those first that the states of the call before may not suit."""


@lru_cache(typed=True)
def _require_allowed(cls: "type[Estimator]", name: str, value: Any) -> None:
    """Raise InvalidParameterError for a value that the class does not allow; scikit-learn's check takes 40 us."""
    validate_parameter_constraints(cls._parameter_constraints, {name: value}, caller_name=cls.__name__)


class Estimator(BaseEstimator, ABC):
    """An estimator over a `Learner`: its parameters as a setup, epochs, early stopping, scores.

    The docstrings of its classes list those of these parameters that they have.

    Parameters
    ----------
    model
        Registered model to train; None for the linear model that suits the labels.
    width
        Factors or units of a model that has such; None for its natural width.
    factors
        Factors of each feature, whose products are the terms of pairs.
    cv
        Folds that are held out in turn to choose `alpha`.
    class_weight
        Weight by class, or "balanced" for the inverse of its frequency; multiplies `sample_weight`.
    search
        Values of `alpha` to choose from on held-out rows, by dual ascent or Newton's method; "auto" for 8 of linear
        models on more than 100 rows if only random_state and fit_intercept are set; 0 for none.
    optimizer
        Rule that changes the weights; None for adagrad, or for Newton's method if nothing but `alpha` is set of how to
        train a linear model.
    learning_rate
        Rate of the optimizer; None for its own.
    alpha
        Weight decay: of sgd, momentum and nesterov the penalty alpha / 2 times the sum of squared weights.
        None: searched; or 0 with an optimizer, else the mean sum of squares of a row / 1000.
    l1_ratio
        Share of the L1 norm in the penalty alpha * (l1_ratio * sum|w| + (1 - l1_ratio) / 2 * sum w^2) of a linear
        model, from 0 (L2) to 1 (L1, as the lasso). The weights of columns as they are given are penalised, the
        intercept is not. Above 0 coordinate descent trains, of several classes each against the rest.
    options
        Further options of the optimizer by name.
    model_options
        Options of the model by name, such as {"hidden": 64}.
    lazy
        Rows of the weights that a step changes: "on" for the active rows of a batch, "off" for all, "exact" for
        the result of all, rows catching up when they are next touched.
    format
        Format that batches are trained in: "csr", "csc", "coo" or "dense", whatever X is; "auto" for dense if X is a
        dense array with at most half its values zero, else csr. A dense batch has all rows of the weights active.
    storage
        Storage of rows that are trained as dense: "same" for a dense array; "csr", "uint8" or "float16" to save
        memory, each batch being made dense as it is cut.
    execution
        None, or "dual" to train by dual ascent, without a rate, and on by Newton's method to the minimum.
    batch_rows
        Rows of a step; None for 256, or an eighth of the rows where that is fewer. Of up to 256 rows each step
        has all.
    max_iter
        Passes over the data; None for 20 with an optimizer, else for as many as the minimum needs.
    shuffle
        Whether each pass has a new order of rows; "once" for one order that all passes have.
    random_state
        Seed of the order, of held-out rows and of starting values.
    fit_intercept
        Whether a number for each output is added to the scores.
    early_stopping
        Whether training stops when the score of held-out rows no longer rises.
    validation_fraction
        Share of the rows that early stopping holds out.
    n_iter_no_change
        Passes without a rise after which early stopping ends the training.
    tol
        Rise of the score that counts as one, 1e-3 for None. With `l1_ratio` the duality gap, by the loss of zero
        weights, at which training ends, 1e-4 for None.
    """

    _learner: Learner
    search_: Choice | None
    _parameter_constraints: dict[str, list[Any]]
    _defaults: Mapping[str, Any]

    @abstractmethod
    def _model(self) -> Model:
        """Return the model to train, for the labels that are known. Raises ValueError if it does not suit them."""

    @abstractmethod
    def _width(self, model: Model) -> int:
        """Return N, columns of the weights, or the factors of a model that has such."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the attributes that pickle stored; parameters that are newer than the stored estimator are defaults."""
        super().__setstate__(dict(self._defaults) | state)

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether `fit` or `partial_fit` has begun a training."""
        return hasattr(self, "_learner")

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags; sparse input is allowed."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def coef_(self) -> Any:
        """Return the weights [outputs, D], of a regressor of one number [D]; the model's own memory.

        After `sparsify` a csr array.
        """
        weights = self._shaped(self._fitted_array("w"))
        return scipy.sparse.csr_array(np.atleast_2d(weights)) if self.__dict__.get("_is_sparse") else weights

    def sparsify(self) -> Self:
        """Make `coef_` a csr array [outputs, D], smaller if most weights are 0; return the estimator."""
        check_is_fitted(self)
        self._is_sparse = True
        return self

    def densify(self) -> Self:
        """Make `coef_` an array again; return the estimator."""
        check_is_fitted(self)
        self._is_sparse = False
        return self

    @property
    def intercept_(self) -> np.ndarray:
        """Return the intercepts [outputs]; zeros if there are none. NotFittedError before `fit`."""
        check_is_fitted(self)
        arrays = self._learner.arrays
        return arrays["b"] if "b" in arrays else np.zeros(self._outputs, self._learner.dtype)

    def _fitted_array(self, name: str) -> np.ndarray:
        """Return the trained parameter `name`, such as "w", not copied; NotFittedError before `fit`.

        AttributeError for an unknown name.
        """
        check_is_fitted(self)
        if name not in self._learner.arrays:
            known = ", ".join(self._learner.arrays)
            raise AttributeError(f"The model {self._learner.model.name} has no {name}; its arrays are {known}.")
        return self._learner.arrays[name]

    def _shaped(self, weights: np.ndarray) -> np.ndarray:
        """Return weights [features, outputs] in scikit-learn's orientation [outputs, features], a view."""
        return weights.T

    @property
    def _outputs(self) -> int:
        """Return the count of outputs of the trained model, columns of its scores."""
        return self._learner.model.outputs or self._learner.width

    def save(self, folder: str | os.PathLike, force: bool = False) -> None:
        """Write the fitted model to a new folder, without pickle; `workbench.load_model` reads it.

        NotFittedError before `fit`; ModelFolderError for a folder that exists, unless `force` replaces a model.
        """
        from workbench.training.trained import Labels, TrainedModel

        check_is_fitted(self)
        TrainedModel.of_estimator(self, Labels("numbers"), {}, "", {}).save(folder, force)

    # Training

    def _setting(self, name: str) -> Any:
        """Return a parameter's value, its usual one for None."""
        value = getattr(self, name)
        return UNSEARCHED[name] if value is None else value

    def _refuse_wrong(self) -> None:
        """Raise InvalidParameterError, a ValueError, for wrong parameters, ValueError for a value given twice."""
        given = {name: getattr(self, name) for name in self._defaults}
        given = {name: value for name, value in given.items() if value is not self._defaults[name]}
        for name, value in given.items():
            (_require_allowed if type(value) in (int, str) else _require_allowed.__wrapped__)(type(self), name, value)
        options = dict(self.options or {})
        is_given = {"learning_rate": self.learning_rate is not None, "decay": bool(self._setting("alpha"))}
        if twice := [name for name, given in is_given.items() if given and name in options]:
            raise ValueError(f"{twice[0]} is a parameter and in options, too; keep one of the two.")

    def _checked(self, x: Any, y: Any, first: bool, **checks: Any) -> tuple[Any, np.ndarray]:
        """Return validated x (csr or dense, float) and y; `first` notes the columns. ValueError if invalid.

        With an L1 penalty csc stays csc, as coordinate descent reads columns: to csr and back took half of `fit`.
        """
        self._refuse_wrong()
        refuse_path(x, "fit")
        frame, y = computed(x), dense_target(y)
        x = sound(frame, "data -> fit")
        refuse_masked(y, "y")
        kinds = "f" if "y_numeric" in checks else "biuU"
        kept = ["csr", "csc"] if self._is_l1 else "csr"
        if is_plain(x) and is_plain_target(y, x.shape[0], kinds) and self._has_width(x, first):
            return canonical(x), y
        if has_sparse_columns(frame):
            validate_data(self, frame, skip_check_array=True, reset=first)  # the names of its columns
            x, y = check_X_y(x, y, accept_sparse=kept, dtype=float_types(x), estimator=self, **checks)
        else:
            x, y = validate_data(self, x, y, accept_sparse=kept, dtype=float_types(x), reset=first, **checks)
        return canonical(x), y

    def _has_width(self, x: Any, first: bool) -> bool:
        """Return whether x, whose columns have no names, has those of the first call; on a first call note them."""
        if first:
            self.n_features_in_ = x.shape[1]
            self.__dict__.pop("feature_names_in_", None)
        return self.__dict__.get("n_features_in_") == x.shape[1] and "feature_names_in_" not in self.__dict__

    def _start(self, x: Any, weights: np.ndarray | None, y: np.ndarray | None = None) -> None:
        """Set `_learner` to a new one of these parameters, at its starting values, for data like x [R, D], weights.

        A linear model has float64 weights if float32 ones would lose what x, or numbers y, tell.
        """
        model, rows, seed = self._model(), self._batch_rows(x), self._seed()
        is_wide = model.is_product and x.dtype == np.float32 and needs_float64(x, y)
        dtype = np.dtype(np.float64) if is_wide else x.dtype
        is_full = self.format == "auto" and isinstance(x, np.ndarray) and 2 * np.count_nonzero(x) >= x.size
        usual = "csr" if self.format == "auto" else self.format
        setup = self._setup(model, dtype, rows, "dense" if is_full else usual, seed)
        setup = self._setup(model, dtype, rows, "csr", seed) if is_full and impossible_reason(setup) else setup
        scaling = None
        if model.enter_scaling and setup.storage in ("same", "csr"):  # the others hold whole numbers as they are
            scaling = pair_scaling(x, weights, has_intercept=setup.has_intercept)
            setup = setup.changed(dtype="float64") if scaling.is_wide else setup
            if far := scaling.too_far:
                columns, which = ", ".join(map(str, far[:5])), "columns" if far[1:] else "column"
                _warn(
                    f"The mean of the {which} {columns} is more than {FARTHEST:,.0f} times the deviation, of which "
                    "products of values tell nothing.\nSubtract the mean, as sklearn.preprocessing.StandardScaler does."
                )
        self._learner = Learner(setup, x.shape[1], self._width(model), scaling)
        self._trained_by = self._how_to_train()

    def _how_to_train(self) -> dict[str, Any]:
        """Return the values of the parameters `HOW_TO_TRAIN`, options copied."""
        values = {name: getattr(self, name) for name in HOW_TO_TRAIN if name in self._defaults}
        return values | {"options": dict(self.options or {})}

    def _go_on(self, x: Any) -> None:
        """Train by the parameters as they are now, for x [R, D], if some have changed since the call before.

        Raises ValueError, which says what to type, if parameters or states of the training do not suit them.
        """
        now = self._how_to_train()
        before = self.__dict__.setdefault("_trained_by", now)
        changed = [name for name in now if now[name] != before[name]]
        if not changed:
            return
        learner, model = self._learner, self._model()
        known = learner.setup
        rows = self._batch_rows(x) if "batch_rows" in changed else known.batch_rows
        seed = self._seed() if "random_state" in changed else known.seed
        format = self.format if "format" in changed and self.format != "auto" else known.format
        try:
            if (model.name, self._width(model)) != (known.model, learner.width):
                raise SetupError("It has other weights.")
            learner.go_on_as(self._setup(model, learner.dtype, rows, format, seed))
        except ValueError as error:
            name = changed[0]
            raise ValueError(
                f"{name} was {before[name]!r} in the call before and is {now[name]!r} now, which the training cannot "
                f"go on with: {error}\n"
                f"Type estimator.set_params({name}={before[name]!r}) to go on, or estimator.fit(X, y) to begin anew."
            ) from None
        self._trained_by = now

    def _batch_rows(self, x: Any) -> int:
        """Return the rows of a batch of x: as the parameter says, or 256, an eighth of x where that is fewer."""
        if self.batch_rows is not None:
            return self.batch_rows
        return min(MOST_ROWS, max(1, x.shape[0] // LEAST_STEPS)) if x.shape[0] > MOST_ROWS else MOST_ROWS

    def _seed(self) -> int:
        """Return the seed that `random_state` stands for, drawn from it if it is no number."""
        return _seed_of_number(state) if type(state := self.random_state) is int else _seed_of(state)

    def _setup(self, model: Model, dtype: np.dtype, batch_rows: int, format: str, seed: int) -> Setup:
        """Return the training setup of the parameters, for batches of `batch_rows` in `format`."""
        alpha = self._setting("alpha")
        options = {"decay": alpha} if alpha else {}
        options |= {} if self.learning_rate is None else {"learning_rate": self.learning_rate}
        update = "standard" if format == "dense" else UPDATES[self.lazy]
        chosen = {"format": format, "model": model.name, "intercept": self.fit_intercept, "update": update}
        chosen |= {} if self.execution is None else {"execution": self.execution}
        chosen, _ = complete_settings(chosen, fastest=True)
        chosen |= {"storage": self.storage, "batch_rows": batch_rows, "shuffle": self.shuffle is True, "seed": seed}
        model_options = self.model_options and read_options(self.model_options, "model_options")
        chosen |= {"dtype": np.dtype(dtype).name, "model_options": model_options}
        optimizer = self._setting("optimizer")
        return with_epoch_calls(Setup(**chosen, optimizer=optimizer, options={**options, **(self.options or {})}))

    def _train(self, x: Any, targets: np.ndarray, weights: np.ndarray | None, epochs: int | None) -> None:
        """Train the epochs of one call in place, fewer with early stopping; sets `n_iter_`.

        `epochs` of None are those of `fit`, which may search; it sets `search_` and `alpha_`, too.
        """
        learner = self._learner
        is_l1 = self._is_l1
        x = x if is_l1 else as_trained(x, learner.setup)
        if weights is not None:
            x, targets, weights = with_weights(x, targets, weights, learner.dtype, is_whole=epochs is None)
        is_whole = epochs is None
        self._is_one_against_rest = is_l1 and learner.model.loss == "softmax"
        if is_l1:
            self._descend_columns(x, targets, weights)
        else:
            self._train_rows(x, targets, weights, epochs)
        learner.require_finite(x, is_whole)
        if is_whole:
            self._warn_if_worse(x, targets, weights)

    @property
    def _is_l1(self) -> bool:
        """Return whether the penalty has an L1 norm."""
        return self.__dict__.get("l1_ratio", 0.0) > 0

    def _refuse_l1_steps(self) -> None:
        """Raise ValueError if an L1 penalty is set, which steps of an optimizer do not have."""
        if self._is_l1:
            raise ValueError(
                f"partial_fit does not train with l1_ratio={self.l1_ratio}: its coordinate descent needs all rows.\n"
                'Type estimator.fit(X, y), or l1_ratio=0, optimizer="ftrl", options={"l1": 1.0} for steps with one.'
            )

    def _descend_columns(self, x: Any, targets: np.ndarray, weights: np.ndarray | None) -> None:
        """Train with an L1 penalty by coordinate descent, `alpha` searched if it is None; as `_take` does.

        Raises ValueError for models and parameters that it is not for.
        """
        learner, allowed = self._learner, {"alpha", "format"}
        if other := [name for name in self.parameters_set() if name not in allowed]:
            raise ValueError(
                f"l1_ratio={self.l1_ratio} is trained by coordinate descent, and {other[0]} is set, too.\n"
                f'Leave {other[0]} out, or give l1_ratio=0; optimizer="ftrl" takes options={{"l1": 1.0}}.'
            )
        if why_no_search(learner.model.loss, learner.model.is_product, LEAST_ROWS):
            raise ValueError(
                f"The model {learner.model.name} is not trained with an L1 penalty; linear models are.\n"
                "Leave model or l1_ratio out."
            )
        if learner.setup.format == "dense":
            x = as_trained(x, learner.setup)
        elif isinstance(x, np.ndarray) and not (self.format == "csr" and 2 * np.count_nonzero(x) >= x.size):
            x = as_csr(x, learner.dtype)
        given: dict[str, Any] = {"outputs": self._outputs, "has_intercept": learner.setup.has_intercept}
        given |= {"l1_ratio": float(self.l1_ratio), "alpha": None if self.alpha is None else float(self.alpha)}
        given |= {"count": ALPHAS if self.search in ("auto", 0) else int(self.search), "folds": self._folds()}
        given |= {"seed": learner.setup.seed, "tolerance": TOLERANCE if self.tol is None else float(self.tol)}
        given["most"] = MOST_SWEEPS if self.max_iter is None else self.max_iter
        y = np.ascontiguousarray(learner.run.targets(targets))
        try:
            found = fit_l1(
                x if x.dtype == learner.dtype else x.astype(learner.dtype), y, weights, learner.model.loss, **given
            )
        except SetupError as error:
            raise ValueError(str(error)) from None
        self._take(found)
        self.search_ = found.choice
        self.dual_gap_ = found.gap

    def _warn_if_worse(self, x: Any, targets: np.ndarray, weights: np.ndarray | None) -> None:
        """Warn, as of a training that has not converged, if a prediction that ignores X is better on rows of x."""
        if (step := x.shape[0] // MOST_SCORED) > 1:
            x, targets, weights = x[::step], targets[::step], None if weights is None else weights[::step]
        x, learner = x if isinstance(x, np.ndarray) else x.tocsr(), self._learner
        given = learner.scores(x), targets, weights, learner.setup.has_intercept
        if better := constant.why_worse(learner.model.target, *given):
            text = f"Training ended worse than {better} on rows trained on.\n"
            todo = "Scale X, as sklearn.preprocessing.MaxAbsScaler does, or set another max_iter or learning_rate."
            _warn(text + todo)

    def _train_rows(self, x: Any, targets: np.ndarray, weights: np.ndarray | None, epochs: int | None) -> None:
        """Train as `_train` does, on x, targets and weights as the learner takes them."""
        learner = self._learner
        if epochs is None:
            self.search_ = None
            self.alpha_ = float(learner.setup.options.get("decay", 0.0))
            count, passes = self._settings_to_search(x), self.max_iter
            if learner.setup.execution == "dual":
                self._ascend(x, targets, weights, passes or MOST_PASSES)
                return
            if count or self._is_direct(passes):
                given = as_csr(x, learner.dtype), targets, weights, learner.model.loss
                self._train_by_search(*given, count, passes) if count else self._minimize(*given)
                return
            epochs = MOST_EPOCHS if passes is None else passes
        if self.shuffle == "once":
            order = np.random.default_rng(learner.setup.seed).permutation(x.shape[0])
            x, targets, weights = x[order], targets[order], None if weights is None else weights[order]
        with learner.scaled(x, targets, weights) as (rows, numbers):
            held_out = None
            if self.early_stopping and epochs > 1:
                rows, numbers, weights, held_out = self._split(rows, numbers, weights)
            self.n_iter_ = self._do_epochs(rows, numbers, weights, held_out, epochs)

    def _do_epochs(self, x: Any, targets: np.ndarray, weights: Any, held_out: tuple | None, epochs: int) -> int:
        """Train up to `epochs` epochs in place, fewer if the score of the rows `held_out` rises no more.

        Return how many it were.
        """
        learner, best, without_gain, done = self._learner, -np.inf, 0, 0
        asked = epochs, 1 if held_out else epochs, LEAST_STEPS if self._is_whole(x) else 1
        with losses_times(lambda: learner.loss_unit):
            for done, loss in enumerate(learner.epochs(x, targets, weights, *asked), 1):
                if held_out is None:
                    tell("epoch", done, epochs, {"loss": loss})
                    continue
                score = constant.quality(learner.model.target, learner.scores(held_out[0]), *held_out[1:])
                tell("epoch", done, epochs, {"loss": loss, "held-out score": score})
                without_gain = 0 if score > best + self._setting("tol") else without_gain + 1
                best = max(best, score)
                if without_gain >= self.n_iter_no_change:
                    break
        return done

    def _folds(self) -> int | None:
        """Return how many folds a search holds out in turn; None to choose by the count of rows."""
        return None

    def _settings_to_search(self, x: Any) -> int:
        """Return the count of settings to choose from for x, 0 to train as the parameters say.

        Raises ValueError if a search is asked for of a model or with parameters that it is not for.
        """
        if not self.search:
            return 0
        model, wanted = self._learner.model, self.search if self.search != "auto" else 0
        given = self.parameters_set()
        if given and wanted:
            raise ValueError(
                f"search={wanted} chooses how to train, and {given[0]} is set, too; expected one of the two.\n"
                f"Leave {given[0]} out, or give search=0."
            )
        if reason := why_no_search(model.loss, model.is_product, x.shape[0]):
            if wanted:
                raise ValueError(f"{reason}.\nGive search=0.")
            return 0
        suits = self.max_iter is None and x.shape[0] > FEWEST_ROWS
        suits = suits and is_small(x.shape, self._outputs, x.dtype.itemsize)
        is_auto = not given and (suits or self._folds() is not None)
        return int(wanted) or (COUNT if is_auto else 0)

    def parameters_set(self) -> list[str]:
        """Return the names of parameters of how to train, without `max_iter`, that are not at their defaults."""
        return [name for name in NO_SEARCH if getattr(self, name) not in (SHARED[name], "auto")]

    def _is_direct(self, passes: int | None) -> bool:
        """Return whether nothing but the decay is set, so that a linear model is trained to its minimum."""
        model = self._learner.model
        is_linear = not why_no_search(model.loss, model.is_product, LEAST_ROWS)
        return is_linear and passes is None and set(self.parameters_set()) <= {"alpha"}

    def _minimize(self, x: Any, targets: np.ndarray, weights: np.ndarray | None, loss: str, **given: Any) -> None:
        """Write the weights at the minimum of the objective; sets `alpha_` and `n_iter_`, and warns if it is not."""
        given |= {"outputs": self._outputs, "has_intercept": self._learner.setup.has_intercept}
        targets, decay = (
            np.ascontiguousarray(self._learner.run.targets(targets)),
            None if self.alpha is None else self.alpha_,
        )
        try:
            found = find_minimum(x, targets, weights, loss, decay=decay, **given)
        except SetupError as error:
            raise ValueError(str(error)) from None
        self._take(found)

    def _ascend(self, x: Any, targets: np.ndarray, weights: np.ndarray | None, most: int) -> None:
        """Train by dual ascent, then by Newton's method, `most` passes in all, until the duality gap is small."""
        learner, first = self._learner, min(most, MOST_ASCENT)
        with learner.scaled(x, targets, weights) as (rows, numbers):
            self._do_epochs(rows, numbers, weights, None, first)
        given = as_csr(x, learner.dtype), targets, weights, learner.model.loss
        self._minimize(*given, start=learner.run.point, epochs=most - first, before=first)

    def _train_by_search(
        self, x: Any, targets: np.ndarray, weights: np.ndarray | None, loss: str, count: int, epochs: int | None
    ) -> None:
        """Write the weights that a search of `count` settings finds; sets `search_`, `alpha_`, `n_iter_`."""
        learner = self._learner
        given: dict[str, Any] = {"outputs": self._outputs, "has_intercept": learner.setup.has_intercept, "count": count}
        given |= {"seed": learner.setup.seed, "epochs": epochs, "folds": self._folds()}
        targets = np.ascontiguousarray(learner.run.targets(targets))
        try:
            found = search_decay(x, targets, weights, loss, **given)
        except SetupError as error:
            raise ValueError(str(error)) from None
        self._take(found)
        self.search_ = found.choice

    def _take(self, found: Found) -> None:
        """Set weights, intercept and `alpha_` to those found; warn if the objective is not at its minimum."""
        self._learner.run.set_weights(found.weights, found.intercept)
        self.alpha_, self.n_iter_ = found.decay, found.epochs
        self._learner.epoch = found.epochs
        if found.warning:
            _warn(found.warning)

    def _is_whole(self, x: Any) -> bool:
        """Return whether every step is one of all rows, of which an epoch then has `LEAST_STEPS`."""
        return self.batch_rows is None and self.execution is None and x.shape[0] <= MOST_ROWS

    def _split(self, x: Any, targets: np.ndarray, weights: np.ndarray | None) -> tuple:
        """Return the rows to train on, and (x, targets, weights) of `validation_fraction` of them.

        Raises ValueError if none remain.
        """
        count = max(1, round(self.validation_fraction * x.shape[0]))
        if count >= x.shape[0]:
            raise ValueError(f"early_stopping holds {count} of {x.shape[0]} rows out; it needs more rows.")
        order = np.random.default_rng(self._learner.setup.seed).permutation(x.shape[0])
        out, kept = np.sort(order[:count]), np.sort(order[count:])
        of_kept, of_out = (None, None) if weights is None else (weights[kept], weights[out])
        return x[kept], targets[kept], of_kept, (x[out], targets[out], of_out)

    def _scores(self, x: Any) -> np.ndarray:
        """Return the scores [R, outputs] of x [R, D]; NotFittedError before `fit`, ValueError if invalid."""
        if "_learner" not in self.__dict__:
            check_is_fitted(self)
        if (scores := self._scores_of_csr(x)) is not None:
            return scores
        refuse_path(x, "predict")
        frame = computed(x)
        x = sound(frame, "data -> predict")
        if has_sparse_columns(frame):
            validate_data(self, frame, skip_check_array=True, reset=False)  # the names of its columns
            x = check_array(x, accept_sparse="csr", dtype=float_types(x), estimator=self)
        elif not (is_plain(x) and self._has_width(x, False)):
            x = validate_data(self, x, accept_sparse="csr", dtype=float_types(x), reset=False)
        dtype, x = self._learner.dtype, canonical(x)
        return self._learner.scores(np.ascontiguousarray(x, dtype) if isinstance(x, np.ndarray) else as_csr(x, dtype))

    def _scores_of_csr(self, x: Any) -> np.ndarray | None:
        """Return the scores [R, outputs] of a csr array in the model's dtype, whose product is all that takes time.

        None for other data, and if x is invalid or has a value that is not finite, which the longer way refuses: each
        stored value takes part in a score, which it makes infinite or NaN; to look at scores is cheaper.
        """
        run = self._learner.run
        if type(x) not in CSR or len(x.shape) != 2 or 0 in x.shape or not self._has_width(x, False):
            return None
        run.catch_up()
        with suppress(formats.FormatError):
            if run.model.is_product and getattr(x, "dtype", None) == run.dtype:
                return scores if are_finite(scores := run.predict(x)) else None
        return None


def _warn(text: str) -> None:
    """Give a ConvergenceWarning at the line that called the package."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("workbench."):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, ConvergenceWarning, stacklevel=level)


def _seed_of(state: Any) -> int:
    """Return an int seed drawn from a random state as scikit-learn takes them: None, a number, or a generator."""
    return int(check_random_state(state).randint(2**31 - 1))


_seed_of_number = lru_cache(_seed_of)
"""The seed of a number: to make scikit-learn's generator of it takes 100 us."""
