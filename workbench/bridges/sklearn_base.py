"""Base of estimators with scikit-learn's interface: parameters, how these become a setup, epochs, early stopping."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from workbench import models
from workbench.bridges.contracts import require_sound
from workbench.bridges.learner import Learner, as_csr
from workbench.models import Model
from workbench.train import Setup
from workbench.train.completion import complete, in_calls
from workbench.train.setup import LAZY

FLOATS = [np.float32, np.float64]
UPDATES = {lazy: update for update, lazy in LAZY.items()}
"""The update of a setup by the word of the optimizers."""

LAUNCHES = (None, "dual")
"""How an estimator may be told to train."""

MOST_ROWS, LEAST_STEPS = 256, 8
"""Rows of a batch where `batch_rows` is None: so many, fewer where an epoch had fewer steps."""

SHARED: dict[str, Any] = {
    "optimizer": "adagrad",
    "learning_rate": None,
    "decay": 0.0,
    "options": None,
    "model_options": None,
    "lazy": "on",
    "launch": None,
    "batch_rows": None,
    "epochs": 20,
    "shuffle": True,
    "random_state": None,
    "fit_intercept": True,
    "early_stopping": False,
    "validation_fraction": 0.1,
    "n_iter_no_change": 5,
    "tol": 1e-3,
}
"""Parameters that every estimator has, with their defaults."""


def with_parameters(**own: Any) -> Callable[[type], type]:
    """Give a class an `__init__` of its own parameters and the shared ones, which does no more than to keep them."""
    defaults = own | SHARED

    def decorate(cls: type) -> type:
        def __init__(self: Any, **given: Any) -> None:  # noqa: N807 - it becomes the method of that name
            if unknown := sorted(set(given) - set(defaults)):
                known = ", ".join(defaults)
                raise TypeError(f"{cls.__name__} has no parameter {unknown[0]!r}; its parameters are {known}.")
            for name, default in defaults.items():
                setattr(self, name, given.get(name, default))

        kind = inspect.Parameter.KEYWORD_ONLY
        named = [inspect.Parameter(name, kind, default=default) for name, default in defaults.items()]
        first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
        __init__.__signature__ = inspect.Signature([first, *named])  # type: ignore[attr-defined]
        cls.__init__ = __init__  # type: ignore[misc]
        return cls

    return decorate


class Estimator(BaseEstimator, ABC):
    """An estimator over a `Learner`: its parameters as a setup, epochs, early stopping, scores."""

    _learner: Learner

    @abstractmethod
    def _model(self) -> Model:
        """The model to train, for the labels that are known."""

    @abstractmethod
    def _width(self, model: Model) -> int:
        """N, columns of the weights, or the factors of a model that has such."""

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_learner")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the features: [outputs, D], of a regressor of one number [D]; the model's own memory."""
        return self._shaped(self._fitted_array("w"))

    @property
    def intercept_(self) -> np.ndarray:
        """Intercepts, added to the scores [outputs]; zeros without an intercept."""
        check_is_fitted(self)
        arrays = self._learner.arrays
        return arrays["b"] if "b" in arrays else np.zeros(self._outputs, self._learner.dtype)

    def _fitted_array(self, name: str) -> np.ndarray:
        check_is_fitted(self)
        if name not in self._learner.arrays:
            known = ", ".join(self._learner.arrays)
            raise AttributeError(f"The model {self._learner.model.name} has no {name}; its arrays are {known}.")
        return self._learner.arrays[name]

    def _shaped(self, weights: np.ndarray) -> np.ndarray:
        return weights.T

    @property
    def _outputs(self) -> int:
        return self._learner.model.outputs or self._learner.width

    # Training

    def _checked(self, x: Any, y: Any, first: bool, **checks: Any) -> tuple[Any, np.ndarray]:
        _require_sound(x, "data -> fit")
        return validate_data(self, x, y, accept_sparse="csr", dtype=FLOATS, reset=first, **checks)

    def _start(self, x: Any) -> None:
        """A learner of these parameters, at its starting values."""
        model = self._model()
        usual = min(MOST_ROWS, max(1, x.shape[0] // LEAST_STEPS))
        rows = usual if self.batch_rows is None else self.batch_rows
        self._learner = Learner(self._setup(model, x.dtype, rows), x.shape[1], self._width(model))

    def _setup(self, model: Model, dtype: np.dtype, batch_rows: int) -> Setup:
        if self.lazy not in UPDATES:
            raise ValueError(f"lazy is {self.lazy!r}; it is one of {', '.join(UPDATES)}.")
        if self.shuffle not in (True, False, "once"):
            raise ValueError(f"shuffle is {self.shuffle!r}; it is one of True, False, 'once'.")
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        if self.launch not in LAUNCHES:
            raise ValueError(
                f"launch is {self.launch!r}; it is None, for the fastest that does as the rest says, or dual."
            )
        options = {"decay": self.decay} if self.decay else {}
        options |= {} if self.learning_rate is None else {"learning_rate": self.learning_rate}
        chosen = {"format": "csr", "model": model.name, "intercept": self.fit_intercept, "update": UPDATES[self.lazy]}
        chosen |= {} if self.launch is None else {"launch": self.launch}
        chosen, _ = complete(chosen, fastest=True)
        chosen |= {"batch_rows": batch_rows, "shuffle": self.shuffle is True, "seed": seed}
        chosen |= {"dtype": np.dtype(dtype).name, "model_options": self.model_options}
        return in_calls(Setup(**chosen, optimizer=self.optimizer, options={**options, **(self.options or {})}))

    def _train(self, x: Any, targets: np.ndarray, weights: np.ndarray | None, epochs: int) -> None:
        """The epochs of one call, all but those that early stopping saves; sets `n_iter_`."""
        if epochs < 1:
            raise ValueError(f"epochs is {epochs}; it is 1 or more.")
        learner = self._learner
        x = as_csr(x, learner.dtype)
        if weights is not None:
            weights = np.ascontiguousarray(weights, learner.dtype)
        if self.shuffle == "once":
            order = np.random.default_rng(learner.setup.seed).permutation(x.shape[0])
            x, targets, weights = x[order], targets[order], None if weights is None else weights[order]
        held_out = None
        if self.early_stopping and epochs > 1:
            x, targets, weights, held_out = self._split(x, targets, weights)
        best, without_gain, done = -np.inf, 0, 0
        for done, _ in enumerate(learner.epochs(x, targets, weights, epochs), 1):  # noqa: B007 - read after the loop
            if held_out is None:
                continue
            score = learner.model.quality(learner.scores(held_out[0]), held_out[1])
            without_gain = 0 if score > best + self.tol else without_gain + 1
            best = max(best, score)
            if without_gain >= self.n_iter_no_change:
                break
        self.n_iter_ = done

    def _split(self, x: Any, targets: np.ndarray, weights: np.ndarray | None) -> tuple:
        """Rows to train on, and (x, targets) of `validation_fraction` of them, drawn by the seed."""
        if not 0 < self.validation_fraction < 1:
            raise ValueError(f"validation_fraction is {self.validation_fraction}; it is between 0 and 1.")
        count = max(1, round(self.validation_fraction * x.shape[0]))
        if count >= x.shape[0]:
            raise ValueError(f"early_stopping holds {count} of {x.shape[0]} rows out; it needs more rows.")
        order = np.random.default_rng(self._learner.setup.seed).permutation(x.shape[0])
        out, kept = np.sort(order[:count]), np.sort(order[count:])
        return x[kept], targets[kept], None if weights is None else weights[kept], (x[out], targets[out])

    def _scores(self, x: Any) -> np.ndarray:
        """Scores [R, outputs]."""
        check_is_fitted(self)
        _require_sound(x, "data -> predict")
        x = validate_data(self, x, accept_sparse="csr", dtype=FLOATS, reset=False)
        dtype = self._learner.dtype
        x = np.ascontiguousarray(x, dtype) if isinstance(x, np.ndarray) else as_csr(x, dtype)
        return self._learner.scores(x)


def _require_sound(x: Any, boundary: str) -> None:
    """Refuse malformed sparse arrays (`ContractError`): SciPy's conversions follow indices wherever they lead."""
    if scipy.sparse.issparse(x):
        require_sound(x, boundary)


def linear(target: str) -> Model:
    """The first registered model with that kind of target whose scores are X @ W."""
    return next(model for model in map(models.get, models.names()) if model.target == target and model.is_product)


def named(name: str, targets: tuple[str, ...]) -> Model:
    """The registered model of that name; `ValueError` for one with another kind of target, with those that would do."""
    model = models.get(name)
    if model.target not in targets:
        able = ", ".join(known for known in models.names() if models.get(known).target in targets)
        raise ValueError(f"The model {name} answers with {model.target}; models that would do: {able}.")
    return model
