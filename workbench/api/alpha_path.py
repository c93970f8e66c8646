"""A path over alpha: linear models with an L1 penalty, for one alpha after the other, each from the weights before."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _check_sample_weight, check_X_y

from kernels.registry import format_count, unknown_name
from workbench.api import inputs
from workbench.training.l1 import MOST_SWEEPS, TOLERANCE, L1Descent, columns_of, targets_of

WEAKEST = 1e-2
"""The least alpha of a path by the largest, if only their count is given."""
LOSSES = {"linear": "squared", "logistic": "logistic", "softmax": "softmax"}
"""Losses of the models that a path trains; of softmax each class is trained against the rest."""


@dataclass(frozen=True)
class AlphaPath:
    """Linear models with an L1 penalty, one for each alpha.

    Attributes
    ----------
    alphas : float64 array of shape [K]
        From the largest to the smallest.
    coefs : list of K csr arrays of shape [outputs, features]
        The weights; zeros are not stored.
    intercepts : float64 array of shape [K, outputs]
        Zeros without intercepts.
    gaps : float64 array of shape [K]
        Duality gap at the end, by the loss of zero weights; the largest of the outputs.
    nonzeros : int64 array of shape [K]
        Weights that are not zero.
    sweeps : int64 array of shape [K]
        Sweeps over columns that it took.
    seconds : float64 array of shape [K]
        Time of each alpha; that of the data before the first is with the first.
    classes : array of shape [classes] or None
        The labels, sorted; None of a regression.
    """

    alphas: np.ndarray
    coefs: list[Any]
    intercepts: np.ndarray
    gaps: np.ndarray
    nonzeros: np.ndarray
    sweeps: np.ndarray
    seconds: np.ndarray
    classes: np.ndarray | None

    def __len__(self) -> int:
        """Return the number of alphas."""
        return len(self.alphas)

    def __repr__(self) -> str:
        """Return a line for each alpha: weights that are not zero, gap and seconds."""
        lines = [f"{'alpha':>10} {'nonzeros':>9} {'gap':>9} {'seconds':>9}"]
        rows = zip(self.alphas, self.nonzeros, self.gaps, self.seconds, strict=True)
        lines += [f"{alpha:>10.4g} {count:>9,} {gap:>9.1e} {seconds:>9.3g}" for alpha, count, gap, seconds in rows]
        return "\n".join(lines)

    def scores(self, X: Any) -> np.ndarray:
        """Return the scores [K, rows, outputs] of X [rows, features], dense or of SciPy."""
        made = [np.asarray(X @ coef.T.toarray()) + own for coef, own in zip(self.coefs, self.intercepts, strict=True)]
        return np.stack(made)


def path(
    X: Any,
    y: Any,
    *,
    l1_ratio: float = 1.0,
    alphas: Any = 20,
    model: str | None = None,
    sample_weight: Any | None = None,
    fit_intercept: bool = True,
    tol: float = TOLERANCE,
) -> AlphaPath:
    """Train linear models with an L1 penalty for one alpha after the other, each from the weights before.

    The objective is the mean of weight * loss plus alpha * (l1_ratio * sum|w| + (1 - l1_ratio) / 2 * sum w^2), that of
    `SparseClassifier` and `SparseRegressor` with `l1_ratio`. Each ends at a measured duality gap.

    Parameters
    ----------
    X : array of shape [rows, features]
        float32 or float64. Csc arrays of SciPy and dense arrays in Fortran order are read as they are, others copied
        by columns.
    y : array of shape [rows]
        Numbers, or labels of classes.
    l1_ratio : float, default 1.0
        Share of the L1 norm in the penalty, above 0.
    alphas : int or array, default 20
        How many, evenly spaced in the logarithm from the largest, which has all weights 0, to a hundredth of it; or the
        values, above 0.
    model : str, optional
        linear, logistic or softmax (each class against the rest); by default what y suggests: numbers with fractions
        are a regression.
    sample_weight : array of shape [rows], optional
        What the loss of each row counts for.
    fit_intercept : bool, default True
        Whether a number without a penalty is added to the scores of each output.
    tol : float, default 1e-4
        Duality gap, by the loss of zero weights, at which each ends.

    Returns
    -------
    AlphaPath
        Weights as sparse arrays, gaps, counts of weights that are not zero, and seconds.

    Raises
    ------
    ValueError
        For invalid data or parameters.

    Examples
    --------
    >>> import numpy as np, scipy.sparse, workbench as wb
    >>> x = scipy.sparse.random_array((200, 50), density=0.1, rng=np.random.default_rng(0), format="csc")
    >>> y = x[:, [0]].toarray()[:, 0] * 3 + x[:, [1]].toarray()[:, 0]
    >>> found = wb.path(x, y, alphas=5)
    >>> found.nonzeros[[0, -1]].tolist(), bool((found.gaps <= 1e-4).all()), found.coefs[-1].shape
    ([0, 2], True, (1, 50))
    """
    if not 0 < l1_ratio <= 1:
        raise ValueError(f"l1_ratio is {l1_ratio}; expected a number above 0 and up to 1.\nType l1_ratio=1.0.")
    if model is not None and model not in LOSSES:
        raise ValueError(unknown_name("model of a path", model, LOSSES))
    start = time.perf_counter()
    x, labels = check_X_y(
        X, np.asarray(y), accept_sparse=["csc", "csr"], dtype=[np.float64, np.float32], y_numeric=model == "linear"
    )
    counts = None if sample_weight is None else _check_sample_weight(sample_weight, x, ensure_non_negative=True)
    if model is None:
        model = "linear" if type_of_target(labels) == "continuous" else "classes"
    classes = None if model == "linear" else np.unique(labels)
    targets: np.ndarray = labels
    if classes is not None:
        if len(classes) < 2 or (model == "logistic" and len(classes) > 2):
            counted = format_count(len(classes), "class")
            raise ValueError(f"y has {counted}; expected 2{'' if model == 'logistic' else ' or more'}.")
        model = "logistic" if len(classes) == 2 else "softmax"
        targets = np.searchsorted(classes, labels)
    columns = columns_of(x)
    parts = targets_of(targets, LOSSES[model], 1 if classes is None or len(classes) == 2 else len(classes))
    given = {"has_intercept": fit_intercept, "is_path": True}
    descents = [L1Descent(columns, target, counts, loss, **given) for target, loss in parts]
    values = _alphas(alphas, max(descent.alpha_max for descent in descents) / l1_ratio)
    coefs, intercepts, gaps, sweeps, seconds = [], [], [], [], []
    for alpha in values:
        gaps.append(max(descent.minimize(float(alpha), l1_ratio, tol, MOST_SWEEPS) for descent in descents))
        coefs.append(scipy.sparse.csr_array(np.stack([descent.weights for descent in descents])))
        intercepts.append([descent.intercept for descent in descents])
        sweeps.append(max(descent.sweeps for descent in descents))
        now = time.perf_counter()
        seconds.append(now - start)
        start = now
    if (missed := int(np.sum(np.array(gaps) > tol))) > 0:
        inputs.say(f"{missed} of {len(values)} alphas ended above the gap {tol:g}: see gaps.")
    nonzeros = np.array([coef.nnz for coef in coefs], np.int64)
    made = np.array(intercepts), np.array(gaps), nonzeros, np.array(sweeps, np.int64), np.array(seconds)
    return AlphaPath(values, coefs, *made, classes)


def _alphas(alphas: Any, largest: float) -> np.ndarray:
    """Return the alphas [K], large ones first, of a count or of values; ValueError for invalid ones."""
    if isinstance(alphas, int | np.integer) and not isinstance(alphas, bool):
        if alphas < 1:
            raise ValueError(f"alphas is {alphas}; expected a count of 1 or more, or values above 0.")
        return np.geomspace(1, WEAKEST, int(alphas)) * (largest or 1.0)
    values = np.sort(np.asarray(alphas, np.float64).reshape(-1))[::-1]
    if not len(values) or not (np.isfinite(values) & (values > 0)).all():
        raise ValueError("alphas has values that are not above 0, or none; expected a count, or finite values above 0.")
    return values
