"""Estimators with scikit-learn's interface that train registered models on our kernels, and keep sparse input sparse.

`SparseClassifier` and `SparseRegressor` train any registered model that answers with classes or with numbers, by
default the linear one; `FactorizationMachineClassifier` and `FactorizationMachineRegressor` add all pairs of features.
They take csr, csc and coo arrays and matrices, with int32 or int64 indices, and dense arrays, and train them in csr
unless `format` says otherwise; they sit in pipelines and searches, and can be pickled. Values are float32 or float64 as
they come; others become float32 if that holds them, else float64.

| parameter             | default  | meaning                                                                     |
|-----------------------|----------|-----------------------------------------------------------------------------|
| model                 | None     | registered model; None: the linear one for the labels                       |
| model_options         | None     | options of the model by name, such as {"hidden": 64}                        |
| width, factors        | None, 8  | factors or units of a model that has such; None: its natural width          |
| class_weight          | None     | number by class, or "balanced"; multiplies the weights of samples           |
| search                | auto     | settings to choose alpha from on held-out rows; auto: 8 of linear models    |
|                       |          | on more than 100 rows if nothing below but random_state and fit_intercept   |
|                       |          | is set; 0: none                                                             |
| optimizer             | None     | rule that changes the weights; None: adagrad, or of linear models Newton's  |
|                       |          | method if nothing but alpha is set                                          |
| learning_rate         | None     | its rate; None: the optimizer's own                                         |
| alpha                 | None     | weight decay: of sgd, momentum, nesterov the penalty alpha / 2 * |w|^2;     |
|                       |          | None: searched; or 0 with an optimizer, else sum of squares of a row / 1000 |
| l1_ratio              | 0.0      | share of the L1 norm in the penalty of a linear model: above 0 it is         |
|                       |          | alpha * (l1_ratio * sum|w| + (1 - l1_ratio) / 2 * sum w^2), weights are 0   |
| options               | None     | further options of the optimizer by name                                    |
| lazy                  | on       | rows of w that change: on: rows that a batch touches; off: all; exact: as    |
|                       |          | off, rows catching up when they are next touched                            |
| format                | csr      | batches: csr, csc, coo or dense, whatever x is; auto: dense if x is a dense  |
|                       |          | array with at most half its values zero, else csr. Dense batches change all |
|                       |          | rows of w, as lazy=off does; a search is done in csr                        |
| storage               | same     | rows trained as dense are kept so, or as csr, uint8, float16: batches are   |
|                       |          | made dense                                                                  |
| execution             | None     | None: as the rest says; dual: by dual ascent, to what sgd, exact and decay   |
|                       |          | come to, with no rate: of model_options, fit_intercept, alpha, max_iter     |
| batch_rows            | None     | rows a step; None: 256, or an eighth of the rows where that is fewer; of up |
|                       |          | to 256 rows each step has all, and an epoch has 8                           |
| max_iter              | None     | passes over the data (epochs); None: 20 with an optimizer, else as needed   |
| shuffle               | True     | True: a new order each epoch; once: one at first, False: as they come       |
| random_state          | None     | draws order, held-out rows and starting values                              |
| fit_intercept         | True     | whether a number for each output is added to the scores                     |
| early_stopping        | False    | stop when the score of held-out rows, validation_fraction (0.1) of all, has |
|                       |          | not risen by tol (1e-3) for n_iter_no_change (5) epochs                     |
| tol                   | None     | 1e-3 of early stopping; with l1_ratio the duality gap, by the loss of zero   |
|                       |          | weights, at which training ends, 1e-4                                       |

With nothing set, `fit` trains 8 values of alpha at once, as columns of one weight matrix, chooses one on a held-out
tenth (of up to 5,000 rows by 5 folds), and trains on with all rows (`workbench.training.search`). With 1,500 rows or
more and 16 for each column it trains one value after the other, from large to small, by Newton's method, until the loss
of held-out rows falls no more; classes on a sample of the rows, unless they are easy. `search_` has the values tried,
`alpha_` is the value; any setting of how to train, or `search=0`, trains that one setting.

Without an optimizer, and with `execution="dual"`, linear models end at the minimum of mean loss + alpha / 2 * |w|^2;
w are weights of the columns as they are given, whatever their means and scales; if `max_iter` passes end before it,
scikit-learn's `ConvergenceWarning` says so.

With `l1_ratio` above 0 linear models are trained by coordinate descent on working sets (`workbench.training.l1`), to a
duality gap of `tol` times the loss of zero weights: SparseRegressor as scikit-learn's ElasticNet of the same alpha and
l1_ratio, SparseClassifier as LogisticRegression of the same l1_ratio with C = 1 / (alpha n); of more than two classes
each against the rest. The weights of the columns as they are given are penalised, the intercept is not; `coef_` has
exact zeros, and `sparsify` makes it sparse. `max_iter` are sweeps over columns. With alpha=None 20 values are tried on
held-out rows. `partial_fit` and optimizers have no such penalty, except that of `optimizer="ftrl"` by its options.

The loss is the mean over the rows of a batch of weight * loss. Rows of weight 0 are left out first; a class that only
they have does not occur. In `fit` weights are scaled to the mean 1: a weight of 2 is the row twice, exactly if steps
are of all rows (up to 256) and with `execution="dual"`; equal weights change nothing. In `partial_fit`, which does not
know the weights of other calls, they are taken as they are: a row of weight 2 moves the model twice as far.
`class_weight="balanced"` counts rows by their weights. Between calls of `partial_fit`, `set_params` may change
`learning_rate`, `alpha`, `options`, `class_weight`, `batch_rows`, `shuffle` and `random_state`; what the states of the
optimizer do not suit, such as another `optimizer`, is refused.

With `optimizer="sgd"`, `lazy="exact"` and alpha = 1 / (C n) that is LogisticRegression of n rows; with alpha divided
by n it is Ridge. Both leave the intercept out of the penalty.

>>> import numpy as np, scipy.sparse
>>> x = scipy.sparse.csr_array(np.float32([[1, 0], [0, 1], [2, 0], [0, 3]]))
>>> estimator = SparseClassifier(max_iter=30, random_state=0).fit(x, ["a", "b", "a", "b"])
>>> estimator.predict(x).tolist(), estimator.coef_.shape
(['a', 'b', 'a', 'b'], (1, 2))
"""

import inspect
import re
import textwrap
from abc import abstractmethod
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from kernels.losses.logistic import write_probabilities
from kernels.registry import nearest
from workbench import models, ops
from workbench.bridges.sklearn_base import SHARED, Estimator
from workbench.bridges.sklearn_inputs import rows_that_count
from workbench.formats.arrays import dense_target
from workbench.models import Model
from workbench.models.softmax import log_sigmoids
from workbench.settings import BY_NAME

CONSTRAINTS: dict[str, list[Any]] = {
    "model": [str, None],
    "width": [Interval(Integral, 1, None, closed="left"), None],
    "factors": [Interval(Integral, 1, None, closed="left"), None],
    "cv": [Interval(Integral, 2, None, closed="left")],
    "class_weight": [StrOptions({"balanced"}), dict, None],
    "search": [StrOptions({"auto"}), Interval(Integral, 2, None, closed="left"), Options(Integral, {0})],
    "optimizer": [str, None],
    "learning_rate": [Interval(Real, 0, None, closed="neither"), None],
    "alpha": [Interval(Real, 0, None, closed="left"), None],
    "l1_ratio": [Interval(Real, 0, 1, closed="both")],
    "options": [Mapping, None],
    "model_options": [Mapping, str, None],
    "lazy": [StrOptions({"on", "off", "exact"})],
    "format": [StrOptions({"auto", "csr", "csc", "coo", "dense"})],
    "storage": [StrOptions(set(BY_NAME["storage"].allowed))],
    "execution": [StrOptions({"dual"}), None],
    "batch_rows": [Interval(Integral, 1, None, closed="left"), None],
    "max_iter": [Interval(Integral, 1, None, closed="left"), None],
    "shuffle": ["boolean", StrOptions({"once"})],
    "random_state": ["random_state"],
    "fit_intercept": ["boolean"],
    "early_stopping": ["boolean"],
    "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
    "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left"), None],
}
"""Valid values of each parameter, in the form that scikit-learn's parameter validation reads."""

ELSEWHERE = {
    "sample_weight": "It is given to fit.\nType estimator.fit(X, y, sample_weight=weights).",
    "C": "scikit-learn's C is 1 / (alpha * rows).\nType alpha=1 / (C * X.shape[0]).",
    "device": "Estimators train on the cpu.\nType workbench train FILE --device cuda in a shell.",
    "threads": "It is set for the process.\nType from kernels.threads import set_threads; set_threads(2).",
}
"""What to type for a parameter that no estimator has, but other functions or libraries have."""
ELSEWHERE |= {"n_jobs": ELSEWHERE["threads"], "gpu": ELSEWHERE["device"], "cuda": ELSEWHERE["device"]}


def _with_parameters(text: str, defaults: Mapping[str, Any]) -> str:
    """Return a docstring with the section Parameters, `defaults` as `Estimator` explains them, before its examples."""
    meanings = dict(re.findall(r"^(\w+)\n((?: {4}.*\n?)+)", inspect.getdoc(Estimator) or "", re.MULTILINE))
    lines = ["Parameters", "----------"]
    for name, default in defaults.items():
        meaning = textwrap.fill(" ".join(meanings.get(name, "").split()), 100)
        lines += [f"{name} : default {default!r}", textwrap.indent(meaning, "    ")]
    head, mark, examples = inspect.cleandoc(text).partition("Examples\n--------\n")
    return "\n".join([head.rstrip(), "", *lines, "", mark + examples]).rstrip() + "\n"


def with_parameters(**own: Any) -> Callable[[type], type]:
    """Return a decorator that gives a class its `__init__` and the shared parameters, documented."""
    defaults = own | SHARED

    def decorate(cls: type) -> type:
        """Add `__init__`, its signature, constraints and documented parameters to the class; return it."""

        def __init__(self: Any, **given: Any) -> None:  # noqa: N807 - it becomes the method of that name
            """Keep the parameters as they are given, unchecked. Raises TypeError if one is unknown."""
            if unknown := sorted(set(given) - set(defaults)):
                known = ", ".join(defaults)
                near = f" {hint}" if (hint := ELSEWHERE.get(unknown[0])) else nearest(unknown[0], defaults)
                raise TypeError(f"{cls.__name__} has no parameter {unknown[0]!r}; its parameters are {known}.{near}")
            for name, default in defaults.items():
                setattr(self, name, given.get(name, default))

        kind = inspect.Parameter.KEYWORD_ONLY
        named = [inspect.Parameter(name, kind, default=default) for name, default in defaults.items()]
        first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
        __init__.__signature__ = inspect.Signature([first, *named])  # type: ignore[attr-defined]
        cls.__doc__ = _with_parameters(cls.__doc__ or "", defaults)
        cls.__init__ = __init__  # type: ignore[misc]
        cls._parameter_constraints = {name: CONSTRAINTS[name] for name in defaults}  # type: ignore[attr-defined]
        cls._defaults = defaults  # type: ignore[attr-defined]
        return cls

    return decorate


def linear(target: str) -> Model:
    """Return the first registered model with that kind of target whose scores are X @ W.

    `target` is "classes", "binary" or "numbers".
    """
    return next(model for model in map(models.get, models.names()) if model.target == target and model.is_product)


def named(name: str, targets: tuple[str, ...]) -> Model:
    """Return the registered model of that name.

    Raises ValueError, with the names that suit, if its kind of target is not in `targets`.
    """
    model = models.get(name)
    if model.target not in targets:
        able = ", ".join(known for known in models.names() if models.get(known).target in targets)
        raise ValueError(f"The model {name} answers with {model.target}; models that would do: {able}.")
    return model


class _Regressor(RegressorMixin, Estimator):
    """Regressors: targets are numbers, a column for each output."""

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags; targets of several columns are allowed where the model takes them."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self._model().outputs is None
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any | None = None) -> Self:
        """Train anew on X [rows, D] and numbers y [rows] or [rows, N]; return the estimator.

        `sample_weight` [rows] multiplies each row's loss, None for ones. Raises ValueError for invalid data or
        parameters, ContractError for broken sparse arrays.
        """
        return self._fit(X, y, sample_weight, first=True, epochs=None)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any | None = None) -> Self:
        """Train one epoch more on X [rows, D] and y, anew if it is the first call; return the estimator.

        Raises ValueError for invalid data, and for other columns of X or y than in the first call.
        """
        self._refuse_l1_steps()
        return self._fit(X, y, sample_weight, first=not hasattr(self, "_learner"), epochs=1)

    def score(self, X: Any, y: Any, sample_weight: Any | None = None) -> float:
        """Return R squared of the predictions for X [rows, D] and numbers y of any container; raises as `predict`."""
        return super().score(X, dense_target(y), sample_weight)

    def _fit(self, x: Any, y: Any, sample_weight: Any, first: bool, epochs: int | None) -> Self:
        """Train `epochs` epochs on x and y, None for as many as `fit` has; `first` starts anew. Return the estimator.

        Raises ValueError for invalid data, or if y changed its form.
        """
        several = self._model().outputs is None
        x, y = self._checked(x, y, first, y_numeric=True, multi_output=several)
        x, y, weights = rows_that_count(x, y, sample_weight)
        if first:
            self._one_number, self._columns = y.ndim == 1, 1 if y.ndim == 1 else y.shape[1]
            self._start(x, weights, y)
        else:
            self._go_on(x)
        if (y.ndim == 1) != self._one_number or (y.ndim == 2 and y.shape[1] != self._columns):
            raise ValueError(f"y has shape {y.shape}; the first call had {self._columns} numbers a row.")
        targets = np.ascontiguousarray(y.reshape(x.shape[0], -1), self._learner.dtype)
        self._train(x, targets, weights, epochs)
        return self

    def _width(self, model: Model) -> int:
        """Return the columns of the weights, or the factors of a model whose outputs are fixed."""
        return self._columns if model.outputs is None else self._chosen_width() or model.width or 1

    @abstractmethod
    def _chosen_width(self) -> int | None:
        """Return how many outputs or factors the parameters ask for; None for as many as the model has by default."""

    def _shaped(self, weights: np.ndarray) -> np.ndarray:
        """Return weights [D, outputs] as [D] for targets [rows], else transposed; a view."""
        return weights[:, 0] if self._one_number else weights.T

    def predict(self, X: Any) -> np.ndarray:
        """Return numbers, in the dtype of the training, [rows], or [rows, N] as y had.

        Raises NotFittedError before `fit`, ValueError for invalid X or another number of columns.
        """
        scores = self._scores(X)
        return scores[:, 0] if self._one_number else scores


class _Classifier(ClassifierMixin, Estimator):
    """Classifiers: `classes_` are the labels, sorted."""

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags; more than two classes are allowed where the model takes them."""
        tags = super().__sklearn_tags__()
        named = self._named_model()
        tags.classifier_tags.multi_class = named is None or named.target == "classes"
        return tags

    @abstractmethod
    def _named_model(self) -> Model | None:
        """Return the model that the parameters name, None if the labels decide.

        Raises ValueError if that model does not answer with classes.
        """

    def fit(self, X: Any, y: Any, sample_weight: Any | None = None) -> Self:
        """Train anew on X [rows, D] and labels y [rows]; return the estimator.

        `sample_weight` [rows] multiplies each row's loss, None for ones. Raises ValueError for invalid data or
        parameters and for one class, ContractError for broken sparse arrays.
        """
        X, y, weights = rows_that_count(*self._checked(X, y, True), sample_weight)
        return self._fit(X, y, _classes_of(y), weights, None)

    def partial_fit(self, X: Any, y: Any, classes: Any | None = None, sample_weight: Any | None = None) -> Self:
        """Train one epoch more on these rows; return the estimator.

        The first call needs `classes`, all that there will be. Raises ValueError without them, for other ones later,
        for a label that is none of them, and if class_weight is "balanced".
        """
        self._refuse_l1_steps()
        first = not hasattr(self, "_learner")
        if first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        if self.class_weight == "balanced":
            raise ValueError("class_weight 'balanced' needs all labels; give partial_fit weights of classes by number.")
        X, y, weights = rows_that_count(*self._checked(X, y, first), sample_weight)
        check_classification_targets(y)
        known = None if classes is None else np.unique(np.asarray(classes))
        if not first and known is not None and not np.array_equal(known, self.classes_):
            raise ValueError(f"classes={known} is not the same as on the first call to partial_fit: {self.classes_}.")
        return self._fit(X, y, known if first else None, weights, 1)

    def score(self, X: Any, y: Any, sample_weight: Any | None = None) -> float:
        """Return the share of right classes for X [rows, D] and labels y of any container; raises as `predict`."""
        return super().score(X, dense_target(y), sample_weight)

    def _fit(
        self, x: Any, y: np.ndarray, classes: np.ndarray | None, weights: np.ndarray | None, epochs: int | None
    ) -> Self:
        """Train `epochs` epochs, None for as many as `fit` has, and return the estimator.

        `weights` [rows] are above 0. `classes`, sorted, are those of a first call, which starts anew; None goes on.
        Raises ValueError for fewer than two classes, or a label that is none of them.
        """
        if classes is not None:
            if len(classes) < 2:
                among = "" if weights is None else " among the rows whose weight is above 0"
                raise ValueError(
                    f"y has one class{among}, {classes.tolist()[0]!r}; a classifier needs samples of 2 classes or more."
                )
            self.classes_ = classes
            self._start(x, weights)
        else:
            self._go_on(x)
        numbers = np.minimum(np.searchsorted(self.classes_, y), len(self.classes_) - 1)
        if (unseen := self.classes_[numbers] != y).any():
            raise ValueError(
                f"y has the label {y[unseen].tolist()[0]!r}, which is none of the classes {self.classes_}."
            )
        weights = self._weights(y, numbers, weights)
        targets = numbers.astype(np.int64)
        if self._learner.model.target == "binary":
            targets = targets.astype(self._learner.dtype)[:, None]
        self._train(x, targets, weights, epochs)
        return self

    def _weights(self, y: np.ndarray, numbers: np.ndarray, weights: np.ndarray | None) -> np.ndarray | None:
        """Return the weights of samples times those of their classes, [rows]; None if all are one.

        `numbers` [rows] are the places of the labels y in `classes_`. "balanced" counts each row by its weight. Raises
        ValueError for a weight of a class that is not a finite number of 0 or more.
        """
        if self.class_weight is None:
            return weights
        if self.class_weight == "balanced":
            totals = np.bincount(numbers, weights, len(self.classes_))
            of_class = totals.sum() / (len(self.classes_) * totals)
        else:
            of_class = compute_class_weight(self.class_weight, classes=self.classes_, y=y)
        if (wrong := ~(np.isfinite(of_class) & (of_class >= 0))).any():
            name, value = self.classes_[wrong].tolist()[0], of_class[wrong][0]
            raise ValueError(f"class_weight of the class {name!r} is {value}; expected a finite number of 0 or more.")
        return of_class[numbers] if weights is None else of_class[numbers] * weights

    def _model(self) -> Model:
        """Return the model that is named; else the linear one, logistic regression for two classes.

        Raises ValueError if the named one is binary and there are more classes.
        """
        named, count = self._named_model(), len(self.classes_)
        model = named or linear("binary" if count == 2 else "classes")
        if model.target == "binary" and count > 2:
            about = f"The model {model.name} is a binary classifier"
            raise ValueError(f"Only binary classification is supported. The type of the target is multiclass. {about}.")
        return model

    def _width(self, model: Model) -> int:
        """Return the columns of the weights: 1 if binary, else the count of classes; or the factors of a model."""
        if model.outputs is not None:
            return self._chosen_width() or model.width or 1
        return 1 if model.target == "binary" else len(self.classes_)

    @abstractmethod
    def _chosen_width(self) -> int | None:
        """Return how many outputs or factors the parameters ask for; None for as many as the model has by default."""

    def decision_function(self, X: Any) -> np.ndarray:
        """Return scores: of two classes [rows], positive for the second, of more [rows, classes].

        Raises NotFittedError before `fit`, ValueError for invalid X or another number of columns.
        """
        scores = self._scores(X)
        if scores.shape[1] == 1:
            return scores[:, 0]
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row, [rows], in the dtype of `classes_`.

        Raises NotFittedError before `fit`, ValueError for invalid X or another number of columns.
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.where(scores > 0, self.classes_[1:], self.classes_[:1])
        return self.classes_[scores.argmax(axis=1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class [rows, classes]: the sigmoid or softmax of the scores, in their dtype.

        Raises NotFittedError before `fit`, ValueError for invalid X or another number of columns.
        """
        scores = self._scores(X)
        if scores.shape[1] > 1:
            return ops.softmax(log_sigmoids(scores) if self._is_one_against_rest else scores)
        both = np.empty((len(scores), 2), scores.dtype)
        if scores.dtype == np.float32 and scores.flags.carray:  # of float64 NumPy's exp is the faster one
            write_probabilities(scores, both)
            return both
        with np.errstate(over="ignore"):  # of a score far below 0: 1 / infinity is its probability
            inverse = np.exp(-scores[:, 0])
        inverse += 1
        np.reciprocal(inverse, out=both[:, 1])
        np.subtract(1, both[:, 1], out=both[:, 0])
        return both


def _classes_of(y: np.ndarray) -> np.ndarray:
    """Return the classes in labels y [rows], sorted; few whole numbers or texts pass without scikit-learn's check.

    That check raises ValueError, or warns, for what look like numbers instead of classes.
    """
    if y.dtype.kind in "biuU" and len(classes := np.unique(y)) <= max(2, len(y) // 4):
        return classes
    check_classification_targets(y)
    return np.unique(y)


@with_parameters(model=None, width=None, l1_ratio=0.0)
class SparseRegressor(_Regressor):
    """Regression by a registered model whose target is numbers, by default the linear one; half the squared error.

    Examples
    --------
    >>> x = np.eye(3, dtype=np.float32)
    >>> SparseRegressor(max_iter=30, random_state=0).fit(x, [1.0, 2.0, 3.0]).predict(x).shape
    (3,)
    """

    def _model(self) -> Model:
        """Return the registered model of the parameter `model`, the linear one if that is None.

        Raises ValueError if it does not answer with numbers.
        """
        return linear("numbers") if self.model is None else named(self.model, ("numbers",))

    def _chosen_width(self) -> int | None:
        """Return the parameter `width`: outputs or factors, None for as many as the model has by default."""
        return self.width


@with_parameters(model=None, width=None, class_weight=None, l1_ratio=0.0)
class SparseClassifier(_Classifier):
    """Classification by a registered model, by default logistic regression of two classes, softmax of more.

    Examples
    --------
    >>> x = np.float32([[1, 0], [0, 1], [2, 0], [0, 3]])
    >>> SparseClassifier(max_iter=30, random_state=0).fit(x, ["a", "b", "a", "b"]).predict(x).tolist()
    ['a', 'b', 'a', 'b']
    """

    def _named_model(self) -> Model | None:
        """Return the registered model of the parameter `model`, or None to choose by the labels.

        Raises ValueError if it does not answer with classes.
        """
        return None if self.model is None else named(self.model, ("binary", "classes"))

    def _chosen_width(self) -> int | None:
        """Return the parameter `width`: outputs or factors, None for as many as the model has by default."""
        return self.width


@with_parameters(model=None, width=None, class_weight=None, l1_ratio=0.0, cv=5)
class SparseClassifierCV(_Classifier):
    """`SparseClassifier` whose search holds `cv` folds out in turn, for any count of rows from 20 on.

    All folds of all settings are columns of one weight matrix, so that each row is read once for all of them. `search_`
    has the mean held-out loss of each alpha.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
    >>> chosen = SparseClassifierCV(cv=3, search=4, random_state=0).fit(x, x[:, 0] > 0)
    >>> chosen.search_.folds, len(chosen.search_.losses), chosen.score(x, x[:, 0] > 0) > 0.9
    (3, 4, True)
    """

    def _named_model(self) -> Model | None:
        """Return the registered model of the parameter `model`, or None to choose by the labels.

        Raises ValueError if it does not answer with classes.
        """
        return None if self.model is None else named(self.model, ("binary", "classes"))

    def _chosen_width(self) -> int | None:
        """Return the parameter `width`: outputs or factors, None for as many as the model has by default."""
        return self.width

    def _folds(self) -> int | None:
        """Return the parameter `cv`, the count of folds that are held out in turn."""
        return self.cv


@with_parameters(factors=8)
class FactorizationMachineRegressor(_Regressor):
    """Second-order factorization machine (Rendle 2010): numbers from features and all pairs of them.

    Examples
    --------
    >>> x = np.float32([[1, 1, 0], [0, 1, 1], [1, 0, 1]])
    >>> FactorizationMachineRegressor(factors=2, random_state=0).fit(x, [1.0, 2.0, 3.0]).factors_.shape
    (3, 2)
    """

    def _model(self) -> Model:
        """Return the factorization machine for regression, whatever the parameters are."""
        return models.get("factorization_machine")

    def _chosen_width(self) -> int | None:
        """Return the parameter `factors`, the count of factors of each feature."""
        return self.factors

    @property
    def factors_(self) -> np.ndarray:
        """Return the factors of the features [D, factors], the model's own memory.

        Raises NotFittedError before `fit`.
        """
        return self._fitted_array("v")


@with_parameters(factors=8, class_weight=None)
class FactorizationMachineClassifier(_Classifier):
    """Second-order factorization machine (Rendle 2010) of two classes.

    Examples
    --------
    >>> x = np.float32([[1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 1, 1]])
    >>> FactorizationMachineClassifier(factors=2, random_state=0).fit(x, [0, 1, 0, 1]).factors_.shape
    (3, 2)
    """

    def _named_model(self) -> Model | None:
        """Return the binary factorization machine, whatever the parameters are."""
        return models.get("factorization_machine_logistic")

    def _chosen_width(self) -> int | None:
        """Return the parameter `factors`, the count of factors of each feature."""
        return self.factors

    @property
    def factors_(self) -> np.ndarray:
        """Return the factors of the features [D, factors], the model's own memory.

        Raises NotFittedError before `fit`.
        """
        return self._fitted_array("v")
