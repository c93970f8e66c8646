"""The one list of competitors that train linear models, with their versions: of `benchmarks fit`, `end` and `path`.

A page names the list that its records were measured with (`LIST`), and what of it was not measured, with the reason.
How to change it: change `COMPETITORS` and raise `LIST`. This module imports nothing of the project, so that scripts
and other environments can load it.
"""

import subprocess
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import metadata
from typing import Any

import numpy as np
import scipy.sparse

LIST = 1
"""Number of the list; records keep it."""
SCHEDULES = ("", " constant", " inverse scaling")
"""Ends of the names of SGDClassifier in `fit`, by its schedule of the learning rate."""
ROWS_WEIGHT = 10
"""Rows for each weight from which on solvers are tried that factor a matrix of all pairs of weights."""


@dataclass(frozen=True)
class Trained:
    """Weights [D] and intercept of a logistic regression, and whether the solver ended before its limit."""

    weights: np.ndarray
    intercept: float
    is_done: bool

    def scores(self, x: Any) -> np.ndarray:
        """Return the scores [R] of rows X [R, D]."""
        return np.asarray(x @ self.weights) + self.intercept


@dataclass(frozen=True)
class Problem:
    """Rows to train on: X csr or dense [R, D], labels y 0 and 1 [R], whether an intercept is wanted, threads, seed."""

    x: Any
    y: np.ndarray
    has_intercept: bool = True
    threads: int = 1
    seed: int = 0


Solve = Callable[[Problem, float, int], Trained]
"""Trains a logistic regression from a problem, the inverse strength C of the penalty, as scikit-learn has it, and the
iterations at most; a solver without such a limit takes 1 / iterations as its tolerance."""


@dataclass(frozen=True)
class Competitor:
    """A solver of the list: the distribution that has it, its version when the list was made, and the module.

    `solve` is for `fit` and `end`; None if the suite starts it in another way. `is_quadratic` is whether it factors a
    matrix of all pairs of weights. `suites` are those that it takes part in.
    """

    name: str
    distribution: str
    version: str
    module: str
    suites: tuple[str, ...]
    solve: Solve | None = None
    is_quadratic: bool = False
    aliases: tuple[str, ...] = ()
    """Names that candidates of suites have, of which the list has another one, without what follows a comma."""

    @property
    def install(self) -> str:
        """The line that installs it."""
        return f"pip install {self.distribution}"

    def why_not(self, rows: int, columns: int) -> str:
        """Return why it is not tried on rows of so many columns, "" if it is."""
        if not self.is_quadratic or ROWS_WEIGHT * columns <= rows:
            return ""
        return f"It factors a matrix of all pairs of weights; here are {rows:,} rows and {columns:,} weights."


def _solve_liblinear(solver: int, problem: Problem, strength: float, iterations: int) -> Trained:
    """Train by liblinear's command: 0 primal, 7 dual; its intercept is penalized, as a column of ones."""
    from liblinear import liblinearutil

    rows = scipy.sparse.csr_matrix(problem.x, dtype=np.float64)
    bias = 1 if problem.has_intercept else -1
    options = f"-s {solver} -c {strength:.12g} -e {1 / iterations:.3g} -B {bias} -q"
    model = liblinearutil.train(2.0 * problem.y - 1, rows, options)
    sign = 1 if model.label[0] == 1 else -1
    found = sign * np.array(model.w[: model.nr_feature + problem.has_intercept])
    weights = found[: model.nr_feature]
    weights = np.pad(weights, (0, rows.shape[1] - len(weights)))  # without the last columns if they are empty
    return Trained(weights, float(found[-1]) if problem.has_intercept else 0.0, False)


def _of_estimator(made: Any, is_done: bool) -> Trained:
    """Return weights and intercept of a fitted estimator."""
    intercept = np.ravel(getattr(made, "intercept_", 0.0))
    return Trained(np.ravel(made.coef_).astype(np.float64), float(intercept[0]) if intercept.size else 0.0, is_done)


def _solve_scikit_learn(solver: str, problem: Problem, strength: float, iterations: int) -> Trained:
    """Train LogisticRegression by one of its solvers."""
    from sklearn.linear_model import LogisticRegression

    made = LogisticRegression(
        C=strength,
        solver=solver,
        max_iter=iterations,
        fit_intercept=problem.has_intercept,
        random_state=problem.seed,
    ).fit(problem.x, problem.y)
    return _of_estimator(made, int(np.max(made.n_iter_)) < iterations)


def _solve_sgd(problem: Problem, strength: float, iterations: int) -> Trained:
    """Train SGDClassifier, until it ends by itself or for so many epochs; its penalty is 1 / (C R)."""
    from sklearn.linear_model import SGDClassifier

    made = SGDClassifier(
        loss="log_loss",
        alpha=1 / (strength * problem.x.shape[0]),
        max_iter=iterations,
        fit_intercept=problem.has_intercept,
        random_state=problem.seed,
    ).fit(problem.x, problem.y)
    return _of_estimator(made, int(made.n_iter_) < iterations)


def _solve_snapml(problem: Problem, strength: float, iterations: int) -> Trained:
    """Train by snapml's dual coordinate descent."""
    from snapml import LogisticRegression

    made = LogisticRegression(
        regularizer=1 / strength,
        max_iter=iterations,
        dual=True,
        n_jobs=problem.threads,
        fit_intercept=problem.has_intercept,
        random_state=problem.seed,
    )
    made.fit(problem.x.astype(np.float32, copy=False), problem.y.astype(np.float64))
    return _of_estimator(made, False)


def _solve_cyanure(problem: Problem, strength: float, iterations: int) -> Trained:
    """Train by the solver that cyanure chooses."""
    from cyanure.estimators import LogisticRegression

    made = LogisticRegression(
        penalty="l2",
        lambda_1=1 / (strength * problem.x.shape[0]),
        max_iter=iterations,
        fit_intercept=problem.has_intercept,
        n_threads=problem.threads,
        random_state=problem.seed,
        verbose=False,
    )
    made.fit(problem.x, problem.y.astype(np.int64))
    return _of_estimator(made, False)


def _solve_skglm(problem: Problem, strength: float, iterations: int) -> Trained:
    """Train skglm's logistic regression with an L1 penalty."""
    from skglm.estimators import SparseLogisticRegression

    alpha = 1 / (strength * problem.x.shape[0])
    made = SparseLogisticRegression(alpha=alpha, max_iter=iterations, fit_intercept=problem.has_intercept)
    x = problem.x.tocsc() if scipy.sparse.issparse(problem.x) else problem.x
    made.fit(x, problem.y.astype(np.int64))
    return _of_estimator(made, made.n_iter_ < iterations)


def _solve_celer(problem: Problem, strength: float, iterations: int) -> Trained:
    """Train celer's logistic regression with an L1 penalty; a column of ones, with the penalty, is its intercept."""
    from celer import LogisticRegression

    x, y, size = problem.x, problem.y.astype(np.int64), problem.x.shape[1]
    if problem.has_intercept:
        ones = np.ones((x.shape[0], 1), x.dtype)
        x = scipy.sparse.hstack([x, ones]) if scipy.sparse.issparse(x) else np.hstack([x, ones])
    is_sparse = scipy.sparse.issparse(x)
    x = scipy.sparse.csc_matrix(x, dtype=np.float64) if is_sparse else np.asfortranarray(x, np.float64)
    made = LogisticRegression(C=strength, max_iter=iterations).fit(x, y)
    weights = np.ravel(made.coef_)
    return Trained(weights[:size], float(weights[-1]) if problem.has_intercept else 0.0, False)


def _solve_glum(problem: Problem, strength: float, iterations: int) -> Trained:
    """Train glum's binomial regression by iteratively reweighted least squares."""
    from glum import GeneralizedLinearRegressor

    made = GeneralizedLinearRegressor(
        family="binomial",
        alpha=1 / (strength * problem.x.shape[0]),
        l1_ratio=0,
        max_iter=iterations,
        fit_intercept=problem.has_intercept,
    )
    x = problem.x.tocsc() if scipy.sparse.issparse(problem.x) else problem.x
    made.fit(x, problem.y.astype(problem.x.dtype))
    return _of_estimator(made, made.n_iter_ < iterations)


def _scikit_learn(name: str, solve: Solve | None, *suites: str, aliases: tuple[str, ...] = ()) -> Competitor:
    """Return a solver of scikit-learn."""
    names = f"scikit-learn LogisticRegression {name}", *aliases
    is_quadratic = name == "newton-cholesky"
    own = "scikit-learn", "1.8.0", "sklearn"
    return Competitor(f"scikit-learn {name}", *own, suites, solve, is_quadratic, names)


_SKLEARN = _solve_scikit_learn
COMPETITORS: tuple[Competitor, ...] = (
    Competitor("liblinear primal", "liblinear-official", "2.50.0", "liblinear", ("fit", "end", "path"),
               partial(_solve_liblinear, 0)),
    Competitor("liblinear dual", "liblinear-official", "2.50.0", "liblinear", ("fit", "end"),
               partial(_solve_liblinear, 7)),
    _scikit_learn("lbfgs", partial(_SKLEARN, "lbfgs"), "fit", "end"),
    _scikit_learn("saga", partial(_SKLEARN, "saga"), "fit", "end", "path"),
    _scikit_learn("newton-cholesky", partial(_SKLEARN, "newton-cholesky"), "fit", "end"),
    _scikit_learn("SGD", _solve_sgd, "fit", "end",
                  aliases=("SGDClassifier", *(f"scikit-learn SGDClassifier{end}" for end in SCHEDULES))),
    _scikit_learn("lasso_path", None, "path"),
    Competitor("Vowpal Wabbit", "vowpalwabbit", "9.11.9", "vowpalwabbit", ("fit", "end")),
    Competitor("snapml", "snapml", "1.17.2", "snapml", ("fit", "end", "path"), _solve_snapml),
    Competitor("cyanure", "cyanure", "1.2.2", "cyanure", ("fit", "end", "path"), _solve_cyanure),
    Competitor("skglm", "skglm", "0.5", "skglm", ("fit", "end", "path"), _solve_skglm),
    Competitor("celer", "celer", "0.7.4", "celer", ("fit", "end", "path"), _solve_celer),
    Competitor("glum", "glum", "3.4.1", "glum", ("fit", "end", "path"), _solve_glum, is_quadratic=True),
)  # fmt: skip
DISTRIBUTIONS = tuple(dict.fromkeys(one.distribution for one in COMPETITORS))
OTHERS = ("liblinear primal", "liblinear dual", "snapml", "cyanure", "skglm", "celer", "glum")
"""Those that are no part of scikit-learn or Vowpal Wabbit, by name."""


def get(name: str) -> Competitor:
    """Return the competitor of this name; KeyError for another one."""
    return {one.name: one for one in COMPETITORS}[name]


def solve(name: str, problem: Problem, strength: float, iterations: int) -> Trained:
    """Train a logistic regression by a competitor, without its warnings that it was stopped early."""
    made = get(name).solve
    assert made is not None
    if scipy.sparse.issparse(problem.x):  # some take matrices of SciPy alone; nothing is copied
        problem = replace(problem, x=scipy.sparse.csr_matrix(problem.x))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return made(problem, strength, iterations)


def versions(python: str = "", *more: str) -> dict[str, str]:
    """Return {distribution: version} of those of the list, and `more`, that are installed, here or for `python`.

    Raises subprocess.CalledProcessError or OSError if that does not run.
    """
    names = (*DISTRIBUTIONS, *more)
    if not python or python == sys.executable:
        every = [(one.name.lower(), one.version) for one in metadata.distributions()]
    else:
        code = "import importlib.metadata as m\nfor d in m.distributions(): print(d.name.lower(), d.version)"
        text = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout
        every = [(name, version) for name, version in map(str.split, text.splitlines())]
    found = dict(reversed(every))  # of two the first one is imported
    return {name: found[name] for name in names if name in found}


def name_of(candidate: str) -> str:
    """Return the name in the list of a suite's candidate; "" if the list does not have it.

    >>> name_of("scikit-learn SGDClassifier constant, dense rows"), name_of("scikit-learn Ridge cholesky")
    ('scikit-learn SGD', '')
    """
    name = candidate.partition(",")[0]
    return next((one.name for one in COMPETITORS if name in (one.name, *one.aliases)), "")


def describe(suite: str, records: Sequence[Mapping[str, Any]]) -> str:
    """Return the sentences of a page on the list: its number, who was measured in which version, who not, and why.

    Of a record `candidate`, `status`, `reason`, `versions` and `list` are read; those of before the list lack the last.

    >>> ok = {"candidate": "celer", "status": "ok", "versions": {"celer": "0.7.4"}, "list": 1}
    >>> describe("path", [ok])[:51]
    'List 1 of linear competitors. Measured: celer 0.7.4'
    """
    measured, reasons = dict[str, str](), dict[str, str]()
    for record in records:
        if name := name_of(record["candidate"]):
            if record["status"] == "ok":
                version = (record.get("versions") or {}).get(get(name).distribution, "")
                measured[name] = version or measured.get(name, "")
            else:
                reasons[name] = record["reason"].rstrip(".")
    lists = {record.get("list") for record in records}
    known = ", ".join(map(str, sorted(one for one in lists if one)))
    text = (
        f"List {known} of linear competitors" if known else "These records are of before list 1 of linear competitors"
    )
    text += ", and records of before it" if known and None in lists else ""
    own = [one.name for one in COMPETITORS if suite in one.suites]
    shown = [f"{name} {measured[name]}".strip() for name in own if name in measured]
    missing = dict[str, list[str]]()
    for name in (one for one in own if one not in measured):
        missing.setdefault(reasons.get(name, "not in the records"), []).append(name)
    text += f". Measured: {', '.join(shown) or 'none'}."
    lost = [f"{', '.join(names)} ({reason})" for reason, names in missing.items()]
    return text + (f" Not measured: {'; '.join(lost)}." if lost else "")
