"""`Recommender`: fitted to what users took, it says what else they may like."""

import json
import math
import os
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
import scipy.sparse

from kernels.registry import format_count, unknown_name, with_known_parameters
from workbench import atomic_files
from workbench.data.errors import DataError
from workbench.formats.compressed import assemble
from workbench.formats.files import check_members
from workbench.json_text import check_document, is_object, parsed
from workbench.recommend import ABOUT, KIND, als, choosing, ease, lists
from workbench.recommend.choosing import Chosen
from workbench.recommend.interactions import Interactions, positions, read, require_users
from workbench.watching import tell

MODELS = ("als", "ease")
VERSION, ARRAYS = 1, "arrays.npz"
FIELDS = {
    "parameters": (is_object, "an object"),
    "history": (lambda value: isinstance(value, list), "a list"),
    "chosen": (is_object, "an object"),
}
"""Fields of model.json, apart from its kind and version."""
FOLD_STEPS = 32
"""Steps of conjugate gradients for rows that are solved once."""
MOST_FACTORS = 2048
"""Factors that the kernel of conjugate gradients takes at most."""
MOST_RANKED = 10_000
"""Users whose recall decides on early stopping, at most: it is known to half a percent or better from so many."""
RANKED = 4096
"""Rows whose lists are in memory at once while recall is computed."""
HELD, PATIENCE, LENGTH = 0.1, 3, 20
"""Share of the entries held out, iterations without a better recall before training stops, length of its lists."""


class Recommendations(NamedTuple):
    """The best items of each row: their labels [rows, n], scores float32 [rows, n] and titles, if there are any.

    A row with fewer than n items ends with scores of -inf, whose items mean nothing.
    """

    items: np.ndarray
    scores: np.ndarray
    titles: np.ndarray | None = None

    def to_frame(self, users: Any = None) -> Any:
        """Return a pandas frame with a row for each: user (or the row's position), item, title and score."""
        import pandas

        rows, columns = np.nonzero(np.isfinite(self.scores))
        users = np.arange(len(self.items)) if users is None else np.atleast_1d(np.asarray(users))
        frame = pandas.DataFrame({"user": users[rows], "item": self.items[rows, columns]})
        if self.titles is not None:
            frame["title"] = self.titles[rows, columns]
        return frame.assign(score=self.scores[rows, columns])


@final
class Recommender:
    """Recommend items to users from what they took, counted or rated.

    Parameters
    ----------
    model : {"als", "ease"}
        Factors by alternating least squares, sparse and small; or EASE, a dense matrix of items by items.
    factors : int
        Length of the vectors of als.
    regularization : float, optional
        Above 0. By default als tries five values and keeps that of the best recall on a tenth of the entries, held out
        for that; below 2,000 entries it takes 0.01, as the library implicit does. By default of ease 500.
    alpha : float
        Factor of the values of implicit feedback, in the confidence of als.
    iterations : int
        Times that als improves both sides; at most, with `early_stopping`.
    random_state : int, optional
        Seed of the initial factors and of what is held out.
    feedback : {"implicit", "explicit"}
        Counts of what was taken, every other pair being a weak no; or ratings, other pairs being unknown.
    confidence : {"linear", "log", "given"}, optional
        Confidence of implicit feedback in als: 1 + alpha * value, 1 + alpha * log(1 + value), or alpha * value as in
        the library implicit. By default, where values differ, the better one of the first two, as the regularization.
        Ease takes every value above 0 as 1.
    frequency_scaling : float
        Power of a row's number of entries that its regularization is multiplied by; 1 is ALS-WR.
    steps : int
        Steps of conjugate gradients in a half of an iteration.
    solver : {"auto", "cg", "cholesky"}
        Conjugate gradients, or exact solutions by Cholesky factorizations; by default what is estimated to be cheaper,
        which is Cholesky only for a few factors.
    early_stopping : bool
        Hold out a tenth of the entries and stop when recall at 20 of these rises no more; the best factors are kept.
        They have not seen the entries held out. Recall is that of 10,000 users, drawn at random, of more.
    split : {"user", "time"}
        What is held out: entries of every user at random, or the latest of all, if the data has times.
    verbose : bool
        Show a progress bar.

    Attributes
    ----------
    user_factors_, item_factors_ : ndarray, float32, [users, factors] and [items, factors]
        Factors of als; scores are their products. The Gram matrix of the items is diagonal.
    item_weights_ : ndarray, float32, [items, items]
        Weights of ease; scores are a user's values times these.
    users_, items_, titles_ : ndarray or None
        Labels in the order of the rows and columns, None if they are positions.
    n_iter_, history_ : int and list of dict
        Iterations done, and seconds and recall of each.
    chosen_ : Chosen
        Regularization and confidence that it was trained with.

    Raises
    ------
    DataError
        For a parameter that is not one of these.

    Examples
    --------
    >>> import numpy as np, workbench as wb
    >>> taken = np.kron(np.eye(2), np.ones((5, 4))) - np.eye(10, 8)
    >>> recommender = wb.Recommender(factors=2, random_state=0).fit(np.maximum(taken, 0))
    >>> recommender.recommend([0, 6], n=1).items.tolist()
    [[0], [6]]
    """

    @with_known_parameters
    def __init__(
        self,
        model: str = "als",
        *,
        factors: int = 64,
        regularization: float | None = None,
        alpha: float = 1.0,
        iterations: int = 15,
        random_state: int | None = None,
        feedback: str = "implicit",
        confidence: str | None = None,
        frequency_scaling: float = 0.0,
        steps: int = 3,
        solver: str = "auto",
        early_stopping: bool = False,
        split: str = "user",
        verbose: bool = False,
    ) -> None:
        """Keep and validate the parameters; nothing is computed."""
        for name, given, known in (
            ("model", model, MODELS),
            ("feedback", feedback, ("implicit", "explicit")),
            ("confidence", "linear" if confidence is None else confidence, ("linear", "log", "given")),
            ("split", split, ("user", "time")),
            ("solver", solver, ("auto", "cg", "cholesky")),
        ):
            if given not in known:
                raise DataError(unknown_name(name, given, known))
        if regularization is None and model == "ease":
            regularization = 500.0
        for name, value in (("factors", factors), ("iterations", iterations), ("steps", steps)):
            _require_whole(name, value, 1)
        if factors > MOST_FACTORS:
            raise DataError(f"factors is {factors}; expected at most {MOST_FACTORS}.")
        if random_state is not None:
            _require_whole("random_state", random_state, 0)
            random_state = int(random_state)
        for name, number in (("regularization", 1.0 if regularization is None else regularization), ("alpha", alpha)):
            if isinstance(number, bool) or not isinstance(number, int | float | np.number) or not 0 < number < np.inf:
                raise DataError(f"{name} is {number!r}; expected a number above 0.")
        if not isinstance(frequency_scaling, int | float | np.number) or not 0 <= frequency_scaling <= 2:
            raise DataError(f"frequency_scaling is {frequency_scaling!r}; expected a number from 0 to 2.")
        self.model, self.factors, self.regularization, self.alpha = (
            model,
            int(factors),
            None if regularization is None else float(regularization),
            float(alpha),
        )
        self.iterations, self.random_state, self.feedback = int(iterations), random_state, feedback
        self.confidence, self.frequency_scaling, self.steps = confidence, float(frequency_scaling), int(steps)
        self.early_stopping, self.split, self.verbose = bool(early_stopping), split, bool(verbose)
        self.solver = solver

    def parameters(self) -> dict[str, Any]:
        """Return the parameters by name, as they are given to `Recommender`."""
        return {
            name: value for name, value in vars(self).items() if not name.startswith("_") and not name.endswith("_")
        }

    def __repr__(self) -> str:
        """Return the model and, once it is fitted, the sizes it was fitted to."""
        if not hasattr(self, "seen_"):
            return f"Recommender({self.model!r})"
        users, items = self.seen_.shape
        return f"Recommender({self.model!r}, {format_count(users, 'user')}, {format_count(items, 'item')})"

    # Fitting

    def fit(self, user_items: Any) -> "Recommender":
        """Fit the model to what users took.

        Parameters
        ----------
        user_items : matrix, frame, path, AnnData or Dataset
            A matrix [users, items], sparse or dense; a frame with the columns user, item and, if there are such, value,
            timestamp and title; or the path of a file of these. Repeated pairs are summed. Users without entries get
            factors of zero.

        Returns
        -------
        Recommender
            Itself.

        Raises
        ------
        DataError
            For NaN, infinite values, negative implicit feedback, fewer than two users, values so large that the
            factors overflow, or a matrix of EASE that does not fit into memory.
        """
        found = self.read(user_items)
        require_users(found)
        held, train = None, found.matrix
        self.chosen_ = self._choose(found)
        if self.early_stopping and self.model == "als":
            train, held = split_entries(found, self.split, self.random_state)
            held = _some_rows(held, self.random_state)
        if self.model == "ease":
            start = time.perf_counter()
            self.item_weights_ = ease.fit(self._weighted(found.matrix), self.chosen_.regularization)
            self.history_ = [{"seconds": time.perf_counter() - start}]
        else:
            self._fit_factors(train, held)
        self.n_iter_ = len(self.history_)
        self.seen_, self.users_, self.items_, self.titles_ = found.matrix, found.users, found.items, found.titles
        return self

    def read(self, source: Any) -> Interactions:
        """Return the entries, labels, times and titles in anything that `fit` takes; DataError if unusable."""
        implicit = 'implicit feedback counts from 0.\nType feedback="explicit" for ratings, which may be negative.'
        return read(source, negative="" if self.feedback == "explicit" else implicit)

    def _choose(self, found: Interactions) -> Chosen:
        """Return regularization and confidence: as given, else by what recalls most of a tenth of the entries."""
        if self.model == "ease":
            return Chosen(self.regularization or 500.0, "given")
        confidences: tuple[str, ...] = (self.confidence or "linear",)
        if self.confidence is None and self.feedback == "implicit":
            confidences = choosing.confidences_for(found.matrix.data)
        if found.matrix.nnz < choosing.FEWEST or (self.regularization is not None and len(confidences) == 1):
            return Chosen(self.regularization or choosing.USUAL, confidences[0])
        train, held = split_entries(found, "user", self.random_state)
        held = _some_rows(held, self.random_state)

        def score(chosen: Chosen) -> float:
            """Return recall at 20 of what is held out, of ratings their mean squared error below 0."""
            training = self._training(train, chosen)
            for _ in range(min(choosing.ITERATIONS, self.iterations)):
                _require_finite(training.iterate, training)
            x, y = training.tables
            if self.feedback == "explicit":
                return -als.squared_error(held, x, y)
            return recall_of_factors(x, y, train, held)

        return choosing.choose(score, self.regularization, confidences)

    def _weighted(self, matrix: Any, chosen: Chosen | None = None) -> Any:
        """Return a CSR matrix with the values that the model computes with: ones, logarithms, or those it has."""
        if self.feedback == "explicit":
            return matrix
        if self.model == "ease":
            values = np.ones_like(matrix.data)
        elif (chosen or self.chosen_).confidence == "log":
            values = np.log1p(matrix.data)
        else:
            return matrix
        return assemble("csr", matrix.indptr, matrix.indices, values, matrix.shape)

    def _training(self, matrix: Any, chosen: Chosen) -> als.Factors:
        """Return the factors of a CSR matrix at the start of their training."""
        is_exact = self.solver == "cholesky" or (
            self.solver == "auto" and als.is_cholesky_cheaper(matrix, self.factors, self.steps)
        )
        return als.Factors(
            self._weighted(matrix, chosen),
            self.factors,
            chosen.regularization,
            self.frequency_scaling,
            als.weights_of(self.feedback, chosen.confidence, self.alpha),
            0 if is_exact else self.steps,
            self.random_state,
        )

    def _fit_factors(self, matrix: Any, held: Any) -> None:
        """Train the factors on a CSR matrix, with early stopping if entries are `held` out."""
        training = self._training(matrix, self.chosen_)
        self.history_, best, kept = [], -1.0, None
        with _progress(self.iterations, self.verbose) as advance:
            for number in range(self.iterations):
                start = time.perf_counter()
                _require_finite(training.iterate, training)
                record = {"seconds": time.perf_counter() - start}
                if held is not None:
                    record["recall at 20"] = recall_of_factors(training.tables[0], training.tables[1], matrix, held)
                    if record["recall at 20"] > best:
                        best, kept, at = record["recall at 20"], [table.copy() for table in training.tables], number
                self.history_.append(record)
                told = {"held-out recall": record.get("recall at 20", math.nan)}
                tell("iteration", number + 1, self.iterations, told)
                advance()
                if held is not None and number - at >= PATIENCE:
                    break
        if kept is not None:
            training.tables = kept
        self._diagonal = _require_finite(training.finish, training)
        self.user_factors_, self.item_factors_ = training.tables

    def _fold(self, matrix: Any) -> np.ndarray:
        """Return the factors float32 [rows, factors] of CSR rows over the fitted items, which stay as they are."""
        x = np.zeros((matrix.shape[0], self.factors), np.float32)
        weights = als.weights_of(self.feedback, self.chosen_.confidence, self.alpha)
        ridge = als.ridges(matrix.indptr, self.chosen_.regularization, self.frequency_scaling)
        als.solve(self._weighted(matrix), self.item_factors_, self._diagonal, ridge, weights, FOLD_STEPS, x)
        return x

    def partial_fit(self, user_items: Any) -> "Recommender":
        """Take in more entries of users who are known or new; the items and what they are worth stay as they are.

        Parameters
        ----------
        user_items : as of `fit`
            Its items must be known. Users of a frame are told by their labels, or by their positions if a matrix was
            fitted; rows of a matrix are new users.

        Returns
        -------
        Recommender
            Itself.
        """
        matrix, labels = self._rows(user_items)
        known, users = self.seen_.shape[0], self.users_
        if labels is None:
            places = known + np.arange(matrix.shape[0])
            if users is not None:
                raise DataError("The rows came without labels of their users; expected a frame with user and item.")
        elif users is None:
            places = positions(None, known, labels, "user")
        else:
            users = _united(users, labels)
            places = positions(users, len(users), labels, "user")
        total = max(known, int(places.max(initial=-1)) + 1)
        entries = matrix.tocoo()
        more = scipy.sparse.csr_array(
            (entries.data, (places[entries.row], entries.col)), shape=(total, matrix.shape[1])
        )
        grown = self.seen_.copy()
        grown.resize(more.shape)
        self.seen_, self.users_ = scipy.sparse.csr_array(grown + more), users
        if self.model == "als":
            table = np.zeros((total, self.factors), np.float32)
            table[:known] = self.user_factors_
            table[places] = self._fold(self.seen_[places])
            self.user_factors_ = table
        return self

    def _rows(self, source: Any) -> tuple[Any, np.ndarray | None]:
        """Return (CSR rows over the fitted items, labels of the rows or None) of any source; DataError if unknown."""
        self._require_fitted()
        found, items = source if isinstance(source, Interactions) else self.read(source), self.seen_.shape[1]
        matrix = found.matrix
        if found.items is not None:
            columns = positions(self.items_, items, found.items, "item")
            entries = matrix.tocoo()
            matrix = scipy.sparse.csr_array(
                (entries.data, (entries.row, columns[entries.col])), shape=(matrix.shape[0], items)
            )
        if matrix.shape[1] != items:
            raise DataError(f"The rows have {matrix.shape[1]} items; expected {items}, as fitted.")
        return matrix, found.users

    def _require_fitted(self) -> None:
        """Raise DataError unless `fit` was called."""
        if not hasattr(self, "seen_"):
            raise DataError("The recommender is not fitted.\nType recommender.fit(user_items).")

    # Answers

    def recommend(self, users: Any = None, n: int = 20, filter_seen: bool = True) -> Recommendations:
        """Return the best items of users: exact, by all scores, which are computed in blocks.

        Parameters
        ----------
        users : label, list of labels, or a frame or matrix
            Users that were fitted (None: all), or the rows of others, as of `fit`, who are folded in.
        n : int
            Length of the lists.
        filter_seen : bool
            Leave out what a user took.

        Returns
        -------
        Recommendations
            Labels of items [users, n], scores [users, n], and titles.
        """
        self._require_fitted()
        _require_whole("n", n, 1)
        is_rows = (
            isinstance(users, Interactions)
            or hasattr(users, "columns")
            or scipy.sparse.issparse(users)
            or getattr(users, "ndim", 0) == 2
        )
        if is_rows:
            matrix, _ = self._rows(users)
            x = self._fold(matrix) if self.model == "als" else None
        else:
            whole = users is None
            places = None if whole else positions(self.users_, self.seen_.shape[0], users, "user")
            matrix = self.seen_ if whole else self.seen_[places]
            x = None if self.model == "ease" else self.user_factors_ if whole else self.user_factors_[places]
        scores = (
            lists.of_weights(self._weighted(matrix), self.item_weights_)
            if x is None
            else lists.of_factors(x, self.item_factors_)
        )
        rows, items = matrix.shape
        return self._named(*lists.best(scores, rows, items, min(int(n), items), matrix if filter_seen else None))

    def similar_items(self, items: Any, n: int = 20) -> Recommendations:
        """Return the items most like some items: by the cosine of their factors, or by the weights of EASE.

        Parameters
        ----------
        items : label or list of labels
            Items that were fitted.
        n : int
            Length of the lists.

        Returns
        -------
        Recommendations
            Labels [items, n], without the item itself, and scores.
        """
        self._require_fitted()
        _require_whole("n", n, 1)
        count = self.seen_.shape[1]
        places = positions(self.items_, count, items, "item")
        own = scipy.sparse.csr_array(
            (np.ones(len(places)), places, np.arange(len(places) + 1)), shape=(len(places), count)
        )
        if self.model == "ease":
            scores = lists.of_weights(own.astype(np.float32), self.item_weights_)
        else:
            length = np.linalg.norm(self.item_factors_, axis=1, keepdims=True)
            unit = self.item_factors_ / np.where(length > 0, length, 1)
            scores = lists.of_factors(unit[places], unit)
        return self._named(*lists.best(scores, len(places), count, min(int(n), count), own))

    def score(self, users: Any, items: Any) -> np.ndarray:
        """Return the scores float32 [pairs] of pairs of a user and an item, by their labels."""
        self._require_fitted()
        rows = positions(self.users_, self.seen_.shape[0], users, "user")
        columns = positions(self.items_, self.seen_.shape[1], items, "item")
        rows, columns = np.broadcast_arrays(rows, columns)
        if self.model == "als":
            return np.einsum("ij,ij->i", self.user_factors_[rows], self.item_factors_[columns])
        weights = self.item_weights_[:, columns].T
        return np.asarray(self._weighted(self.seen_[rows]).multiply(weights).sum(axis=1), np.float32).ravel()

    def _named(self, places: np.ndarray, scores: np.ndarray) -> Recommendations:
        """Return lists of positions [rows, n] with the labels and titles of the items."""
        items = places if self.items_ is None else self.items_[places]
        return Recommendations(items, scores, None if self.titles_ is None else self.titles_[places])

    def recall(self, held: Any) -> float:
        """Return recall at 20 of entries that were held out, CSR [users, items] over the fitted users and items."""
        if self.model == "als":
            return recall_of_factors(self.user_factors_, self.item_factors_, self.seen_, held)
        taken = self._weighted(self.seen_)
        return _recall(lambda rows: lists.of_weights(taken[rows], self.item_weights_), self.seen_, held)

    @property
    def nbytes(self) -> int:
        """Bytes of what was learned, without the entries."""
        names = ("item_weights_",) if self.model == "ease" else ("user_factors_", "item_factors_")
        return sum(getattr(self, name).nbytes for name in names)

    # Folders

    def save(self, folder: str | os.PathLike, force: bool = False) -> None:
        """Write the model to a new folder, which `wb.load_model` reads; nothing in it is a pickle.

        Parameters
        ----------
        folder : path
            The folder. FileExistsError if it exists, unless `force` replaces it.
        force : bool
            Replace a folder that exists.
        """
        self._require_fitted()
        arrays = {"indptr": self.seen_.indptr, "indices": self.seen_.indices, "data": self.seen_.data}
        for name in ("users_", "items_", "titles_"):
            labels = getattr(self, name)
            if labels is not None and labels.dtype.kind == "O":
                if kinds := sorted({type(label).__name__ for label in labels} - {"str"}):
                    what = name[:-2]
                    raise DataError(
                        f"Labels of {name[:-1]} are of the type {kinds[0]}; text or numbers, not both, can be saved.\n"
                        f"Type frame[{what!r}] = frame[{what!r}].map(str) and fit again."
                    )
                labels = labels.astype(str)
            if labels is not None:
                arrays[name] = labels
        if self.model == "als":
            arrays |= {name: getattr(self, name) for name in ("user_factors_", "item_factors_", "_diagonal")}
        else:
            arrays["item_weights_"] = self.item_weights_
        about = {"kind": KIND, "version": VERSION, "parameters": self.parameters(), "history": self.history_}
        about["chosen"] = self.chosen_._asdict()
        with atomic_files.replacing_folder(folder, force) as new:
            (new / ABOUT).write_text(json.dumps(about, indent=1), encoding="utf-8")
            np.savez(new / ARRAYS, shape=np.array(self.seen_.shape), **arrays)

    @classmethod
    def load(cls, folder: str | os.PathLike) -> "Recommender":
        """Read a folder that `save` wrote. Raises DataError for a damaged one or one of a newer version."""
        folder = Path(folder).expanduser()
        try:
            about = check_document(parsed((folder / ABOUT).read_bytes()), KIND, VERSION, FIELDS)
            made = cls(**about["parameters"])
            made.chosen_ = Chosen(**about["chosen"])
            with (folder / ARRAYS).open("rb") as file:
                check_members(file)  # sizes, before memory is taken
                with np.load(file, allow_pickle=False) as arrays:
                    made._set(dict(arrays))
        except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
            raise DataError(f"{folder} holds no recommender that can be read: {error}") from error
        made.history_ = about["history"]
        made.n_iter_ = len(made.history_)
        return made

    def _set(self, found: dict[str, np.ndarray]) -> None:
        """Set what was learned from the arrays of a folder; ValueError or KeyError if they do not fit together."""
        users, items = shape = tuple(found.pop("shape").tolist())
        entries = (found.pop("data"), found.pop("indices"), found.pop("indptr"))
        self.seen_ = scipy.sparse.csr_array(entries, shape=shape)
        self.seen_.check_format()
        labels = {"users_": (users,), "items_": (items,), "titles_": (items,)}
        if self.model == "als":
            factors = found["item_factors_"].shape[-1:]
            learned = {"user_factors_": (users, *factors), "item_factors_": (items, *factors), "_diagonal": factors}
        else:
            learned = {"item_weights_": (items, items)}
        if unknown := sorted({*found} - {*labels, *learned}):
            raise ValueError(f"{ARRAYS} has the unknown array {unknown[0]}")
        for name, size in (learned | labels).items():
            array = found.get(name) if name in labels else found[name]
            if array is not None and array.shape != size:
                raise ValueError(f"{name} has the shape {list(array.shape)}; expected {list(size)}")
            if name in learned and array is not None and array.dtype != np.float32:
                raise ValueError(f"{name} is {array.dtype}; expected float32")
            setattr(self, name, array)


def _some_rows(held: Any, seed: Any) -> Any:
    """Return the entries held out, of at most `MOST_RANKED` rows with such, drawn at random; the others are empty."""
    counts = np.diff(held.indptr)
    rows = np.flatnonzero(counts)
    if rows.size <= MOST_RANKED:
        return held
    is_kept = np.zeros(held.shape[0], bool)
    is_kept[np.random.default_rng(seed).choice(rows, MOST_RANKED, replace=False)] = True
    entries = np.repeat(is_kept, counts)
    starts = np.concatenate(([0], np.where(is_kept, counts, 0).cumsum())).astype(held.indptr.dtype)
    return scipy.sparse.csr_array((held.data[entries], held.indices[entries], starts), shape=held.shape)


def _require_finite(compute: Callable[[], Any], training: als.Factors) -> Any:
    """Return what a step of training computes; DataError if its factors overflow float32."""
    try:
        with np.errstate(all="ignore"):
            found = compute()
        if all(np.isfinite(table.sum(dtype=np.float64)) for table in training.tables):
            return found
    except np.linalg.LinAlgError:  # eigenvalues of NaN
        pass
    largest = training.sides[0].data.max()
    raise DataError(
        f"The factors overflow float32; the largest value of the ratings is {largest:g}.\n"
        "Type ratings = ratings / ratings.max(), or a smaller alpha."
    )


def _united(labels: np.ndarray, more: np.ndarray) -> np.ndarray:
    """Return labels and, after them, those of `more` that are new; numbers stay numbers beside text."""
    import pandas

    new = more[pandas.Index(labels).get_indexer(pandas.Index(more)) < 0]
    if not len(new):
        return labels
    is_one_kind = labels.dtype.kind == new.dtype.kind
    return np.concatenate([labels, new] if is_one_kind else [labels.astype(object), new.astype(object)])


def _require_whole(name: str, value: Any, least: int) -> None:
    """Raise DataError, naming the parameter, unless it is a whole number of at least `least`."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        raise DataError(f"{name} is {value!r}; expected a whole number from {least}.")


def split_entries(found: Interactions, how: str, seed: Any) -> tuple[Any, Any]:
    """Return (entries to train on, entries held out) as CSR matrices: a tenth of each user's, or the latest."""
    matrix, count = found.matrix, found.matrix.nnz
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    if how == "time":
        if found.times is None:
            raise DataError('split is "time", and the ratings have no times; expected a column timestamp.')
        is_held = found.times > np.quantile(found.times, 1 - HELD)
    else:
        draws = np.random.default_rng(seed).random(count)
        order = np.lexsort((draws, rows))
        rank = np.empty(count, np.int64)
        rank[order] = np.arange(count) - np.repeat(matrix.indptr[:-1], np.diff(matrix.indptr))
        is_held = rank < np.diff(matrix.indptr)[rows] * HELD
        is_held &= np.diff(matrix.indptr)[rows] > 1  # a user with one entry keeps it
    if not is_held.any() or is_held.all():
        raise DataError(f"Of {format_count(count, 'entry')} a tenth cannot be held out; expected more.")
    parts = []
    for chosen in (~is_held, is_held):
        starts = np.concatenate(([0], np.bincount(rows[chosen], minlength=matrix.shape[0]).cumsum()))
        entries = matrix.data[chosen], matrix.indices[chosen], starts.astype(matrix.indptr.dtype)
        parts.append(scipy.sparse.csr_array(entries, shape=matrix.shape))
    return parts[0], parts[1]


def recall_of_factors(x: np.ndarray, y: np.ndarray, seen: Any, held: Any) -> float:
    """Return recall at 20 of the entries held out, for users with such entries; what they took is left out."""
    return _recall(lambda rows: lists.of_factors(x[rows], y), seen, held)


def _recall(scores_of: Callable[[np.ndarray], lists.ScoresOf], seen: Any, held: Any) -> float:
    """Return recall at 20 of the entries held out, of the scores of rows with such, block by block."""
    rows, total = np.flatnonzero(np.diff(held.indptr)), 0.0
    for first in range(0, rows.size, RANKED):
        some = rows[first : first + RANKED]
        n = min(LENGTH, held.shape[1])
        places, _ = lists.best(scores_of(some), some.size, held.shape[1], n, seen[some])
        total += lists.recall(places, held[some]) * some.size
    return total / rows.size if rows.size else float("nan")


@contextmanager
def _progress(total: int, is_shown: bool) -> Iterator[Any]:
    """Yield a function that advances a progress bar of `total` steps by one; it does nothing unless `is_shown`."""
    if not is_shown:
        yield lambda: None
        return
    from rich.progress import Progress

    with Progress() as bar:
        task = bar.add_task("als", total=total)
        yield lambda: bar.advance(task)
