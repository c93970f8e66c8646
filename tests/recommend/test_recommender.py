"""The recommender: factors equal to float64 loops, EASE equal to its formula, labels, folders and refused input."""

import gzip
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp
from typer.testing import CliRunner

import kernels
import workbench as wb
from kernels import threads
from tests.support.thread_counts import TWO_AT_MOST, share_out
from workbench import data
from workbench.command import cli
from workbench.recommend import als, choosing, comparing, ease, interactions, lists, recommender
from workbench.recommend.choosing import Chosen
from workbench.recommend.interactions import read

OPTIONS = [
    {"confidence": "linear"},
    {"confidence": "log", "alpha": 20.0},
    {"confidence": "given", "alpha": 20.0},
    {"frequency_scaling": 1.0},
    {"feedback": "explicit"},
    {"feedback": "explicit", "frequency_scaling": 1.0},
]


@pytest.fixture(scope="module")
def taken() -> sp.csr_array:
    """Counts of 120 users and 60 items, one user and one item without any."""
    random = np.random.default_rng(0)
    counts = random.poisson(np.outer(random.gamma(1.0, 1.0, 120), random.gamma(0.5, 1.0, 60)))
    counts[7], counts[:, 11] = 0, 0
    return sp.csr_array(counts.astype(np.float32))


def solved(matrix: sp.csr_array, y: np.ndarray, r: wb.Recommender) -> np.ndarray:
    """The exact factors of each row in float64, by the normal equations of the definition."""
    counts, y = matrix.toarray().astype(float), y.astype(float)
    x = np.zeros((len(counts), y.shape[1]))
    for u, row in enumerate(counts):
        there = row != 0
        ridge = r.chosen_.regularization * max(there.sum(), 1) ** r.frequency_scaling
        if r.feedback == "explicit":
            weight, target = there.astype(float), row
        else:
            more = r.alpha * (np.log1p(row) if r.chosen_.confidence == "log" else row)
            weight = np.where(there, more if r.chosen_.confidence == "given" else 1 + more, 1.0)
            target = there.astype(float)
        x[u] = np.linalg.solve((y.T * weight) @ y + ridge * np.eye(y.shape[1]), y.T @ (weight * target))
    return x


@pytest.mark.parametrize("options", OPTIONS)
def test_folded_users_are_those_of_float64_loops(taken, options):
    made = wb.Recommender(factors=12, regularization=0.1, iterations=4, random_state=0, **options).fit(taken)
    expected = solved(taken, made.item_factors_, made)
    np.testing.assert_allclose(made._fold(taken), expected, atol=1e-5 * np.abs(expected).max())
    lists_of_rows = made.recommend(taken[:5], n=60, filter_seen=False)
    scores = expected[:5] @ made.item_factors_.T
    np.testing.assert_allclose(lists_of_rows.scores, -np.sort(-scores), atol=1e-4 * np.abs(scores).max())


@pytest.mark.parametrize("options", OPTIONS)
def test_cholesky_solves_each_side_exactly(taken, options):
    usual = {"factors": 8, "regularization": 2.0, "iterations": 2, "random_state": 0, "solver": "cholesky"}
    made = wb.Recommender(**usual, **options).fit(taken)
    items = solved(taken.T.tocsr(), made.user_factors_, made)
    np.testing.assert_allclose(made.item_factors_, items, atol=2e-5 * np.abs(items).max())


def test_the_cheaper_solver_is_chosen_by_the_costs_of_the_kernels(taken):
    assert als.is_cholesky_cheaper(taken, 2, 3)
    assert not als.is_cholesky_cheaper(taken, 64, 3)


@pytest.mark.parametrize("options", OPTIONS)
def test_loss_is_that_of_its_definition_and_falls(taken, options):
    made = wb.Recommender(factors=8, regularization=0.1, random_state=0, **options)
    weights = als.weights_of(made.feedback, made.confidence, made.alpha)
    training = als.Factors(taken, 8, 0.1, made.frequency_scaling, weights, 3, 0)
    losses = []
    for _ in range(4):
        training.iterate()
        x, y = (table.astype(float) for table in training.tables)
        counts = taken.toarray().astype(float)
        there = counts != 0
        error = x @ y.T - (counts if made.feedback == "explicit" else there)
        more = made.alpha * counts if made.confidence == "given" else 1 + made.alpha * counts
        weight = there if made.feedback == "explicit" else np.where(there, more, 1.0)
        penalty = sum((r * (t**2).sum(axis=1)).sum() for r, t in zip(training.ridges, (x, y), strict=True))
        losses.append((weight * error**2).sum() + penalty)
        assert training.loss() == pytest.approx(losses[-1], rel=1e-5)
    assert losses == sorted(losses, reverse=True)


def test_three_steps_reach_a_lower_loss_than_three_plain_ones():
    """Of conjugate gradients that multiply by the Gram matrix, as in other libraries, from the same start."""
    random = np.random.default_rng(0)
    chance = 1 / np.arange(1, 401) ** 0.9
    taken = sp.csr_array((random.random((300, 400)) < 12 * chance / chance.sum()).astype(np.float32))
    weights = als.weights_of("implicit", "linear", 40.0)
    training = als.Factors(taken, 16, 1.0, 0.0, weights, 3, 0)
    x, y = (table.astype(float) for table in training.tables)
    dense = taken.toarray().astype(float)
    for _ in range(5):
        training.iterate()
        x = plain(dense, x, y)
        y = plain(dense.T, y, x)
    theirs = als.Factors(taken, 16, 1.0, 0.0, weights, 3, 0)
    theirs.tables = [x.astype(np.float32), y.astype(np.float32)]
    assert training.loss() < theirs.loss()


def plain(counts: np.ndarray, x: np.ndarray, y: np.ndarray, steps: int = 3) -> np.ndarray:
    """Three steps of conjugate gradients without a preconditioner for each row, from x."""
    x, gram = x.copy(), y.T @ y + np.eye(y.shape[1])
    for u, row in enumerate(counts):
        matrix = gram + (y.T * (40 * row)) @ y
        residual = y.T @ np.where(row > 0, 1 + 40 * row, 0) - matrix @ x[u]
        p = residual.copy()
        for _ in range(steps):
            if residual @ residual < 1e-20:
                break
            length = residual @ residual / (p @ matrix @ p)
            x[u] += length * p
            new = residual - length * (matrix @ p)
            p = new + (new @ new) / (residual @ residual) * p
            residual = new
    return x


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("factors", 5),
        ("regularization", 3.0),
        ("alpha", 7.0),
        ("iterations", 2),
        ("random_state", 1),
        ("feedback", "explicit"),
        ("confidence", "given"),
        ("frequency_scaling", 0.5),
        ("steps", 1),
        ("solver", "cholesky"),
    ],
)
def test_every_parameter_matters(taken, name, value):
    usual = {"factors": 6, "iterations": 3, "random_state": 0}
    one, other = wb.Recommender(**usual).fit(taken), wb.Recommender(**usual | {name: value}).fit(taken)
    again = wb.Recommender(**usual).fit(taken)
    np.testing.assert_array_equal(one.item_factors_, again.item_factors_)
    assert one.item_factors_.shape != other.item_factors_.shape or (one.item_factors_ != other.item_factors_).any()


def test_ease_is_its_formula(taken):
    made = wb.Recommender("ease", regularization=5.0).fit(taken)
    x = (taken.toarray() > 0).astype(float)
    inverse = np.linalg.inv(x.T @ x + 5 * np.eye(60))
    expected = -inverse / np.diag(inverse)
    np.fill_diagonal(expected, 0)
    np.testing.assert_allclose(made.item_weights_, expected, atol=1e-5)
    np.testing.assert_allclose(made.score([3, 4], [5, 6]), (x @ expected)[[3, 4], [5, 6]], atol=1e-4)
    best = made.recommend([3], n=4, filter_seen=False)
    np.testing.assert_allclose(best.scores[0], -np.sort(-(x @ expected)[3])[:4], atol=1e-4)
    assert made.similar_items(2, 3).items[0].tolist() == np.argsort(-expected[2], kind="stable")[:3].tolist()


def test_ease_of_many_items_is_refused_before_anything_is_allocated():
    wide = sp.csr_array((np.ones(2, np.float32), ([0, 1], [0, 9_999_999])), shape=(2, 10_000_000))
    with pytest.raises(data.DataError, match=r"EASE needs 400 TB for 10,000,000 items.*at most") as caught:
        ease.fit(wide, 1.0)
    assert 'model="als"' in str(caught.value)


@pytest.mark.parametrize("filter_seen", [True, False])
def test_lists_are_those_of_all_scores_sorted(taken, filter_seen, monkeypatch):
    monkeypatch.setattr(lists, "USERS", 7)
    monkeypatch.setattr(lists, "ITEMS", 13)
    made = wb.Recommender(factors=6, random_state=0).fit(taken)
    scores = made.user_factors_ @ made.item_factors_.T
    if filter_seen:
        scores[taken.toarray() > 0] = -np.inf
    best = made.recommend(n=60, filter_seen=filter_seen)
    np.testing.assert_allclose(best.scores, -np.sort(-scores), rtol=1e-5, atol=1e-6)
    rows = np.arange(120)[:, None]
    there = np.isfinite(best.scores)
    np.testing.assert_allclose(scores[rows, best.items][there], best.scores[there], rtol=1e-5, atol=1e-6)


def frame(taken: sp.csr_array) -> pd.DataFrame:
    entries = taken.tocoo()
    made = pd.DataFrame({"user": entries.row, "item": entries.col, "count": entries.data})
    made["user"] = "u" + made["user"].astype(str)
    made["timestamp"] = np.random.default_rng(1).random(len(made))
    return made.assign(title="Title " + made["item"].astype(str))


def test_labels_are_the_users_own_and_repeated_pairs_are_summed(taken, tmp_path):
    table = frame(taken)
    halves = table.assign(count=table["count"] / 2)
    twice = pd.concat([halves, halves]).sample(frac=1, random_state=0)
    one, other = (wb.Recommender(factors=6, random_state=0).fit(each) for each in (table, twice))
    np.testing.assert_array_equal(one.item_factors_, other.item_factors_)
    best = one.recommend(["u0", "u1"], n=3)
    assert best.items.shape == (2, 3)
    assert not set(best.items[0]) & set(table["item"][table["user"] == "u0"])
    shown = best.to_frame(["u0", "u1"])
    assert list(shown.columns) == ["user", "item", "title", "score"]
    assert (shown["title"] == "Title " + shown["item"].astype(str)).all()
    table.to_csv(tmp_path / "taken.csv", index=False)
    read_again = wb.train(tmp_path / "taken.csv", model="als", factors=6, random_state=0)
    np.testing.assert_array_equal(read_again.recommend(["u0", "u1"], n=3).items, best.items)


@pytest.mark.parametrize(("added", "item"), [({}, "title"), ({"genre": "old"}, "title"), ({"sku": None}, "sku")])
def test_titles_are_the_items_of_a_table_without_a_column_that_identifies_them(taken, added, item):
    """A column of the table is that of the items only if each of its values has one title."""
    table = frame(taken).rename(columns={"count": "rating"})
    own = table["item"] + 1000
    table = table.drop(columns="item").assign(
        **{name: own if value is None else value for name, value in added.items()}
    )
    fitted = wb.Recommender(factors=4, random_state=0).fit(table[["user", *added, "title", "rating", "timestamp"]])
    assert set(fitted.recommend(["u0"], n=3).items[0]) <= set(own if item == "sku" else table["title"])
    assert fitted.seen_.nnz == len(table)


def test_new_users_are_folded_in_and_taken_in(taken):
    table = frame(taken)
    made = wb.Recommender(factors=6, random_state=0).fit(table)
    new = pd.DataFrame({"user": ["new", "new", "u0"], "item": [3, 4, 5]})
    before, items = made.recommend(new[:2], n=5), made.item_factors_.copy()
    made.partial_fit(new)
    np.testing.assert_array_equal(made.recommend("new", n=5).items, before.items)
    np.testing.assert_array_equal(made.item_factors_, items)
    assert made.users_[-1] == "new"
    assert made.seen_[np.flatnonzero(made.users_ == "u0")[0], 5] >= 1


@pytest.mark.parametrize("model", ["als", "ease"])
def test_a_saved_recommender_answers_the_same(taken, model, tmp_path):
    made = wb.Recommender(model, random_state=0).fit(frame(taken))
    made.save(tmp_path / "model")
    again = wb.load_model(tmp_path / "model")
    assert again.parameters() == made.parameters()
    for one, other in zip(made.recommend(n=5), again.recommend(n=5), strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(FileExistsError):
        made.save(tmp_path / "model")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder, arrays: (folder / "arrays.npz").write_bytes(b"PK"), ""),
        (lambda folder, arrays: np.savez(folder / "arrays.npz", **arrays | {"fit": np.ones(2)}), "'?fit"),
        (lambda folder, arrays: write(folder, {k: v for k, v in arrays.items() if k != "_diagonal"}), "_diagonal"),
        (lambda folder, arrays: write(folder, arrays | {"users_": np.array(["a"])}), r"users_ has the shape \[1\]"),
        (
            lambda folder, arrays: write(folder, arrays | {"user_factors_": arrays["user_factors_"][:, :1]}),
            "user_factors_",
        ),
        (lambda folder, arrays: write(folder, arrays | {"indptr": arrays["indptr"][:-1]}), "indptr|index pointer"),
        (lambda folder, arrays: about(folder, version=99), "its version is 99; this program reads 1"),
        (lambda folder, arrays: about(folder, parameters=3), "parameters is 3; expected an object"),
        (lambda folder, arrays: about(folder, parameters={"factors": 0}), "factors is 0"),
    ],
)
def test_a_damaged_recommender_is_refused_by_name(taken, tmp_path, change, message):
    folder = tmp_path / "model"
    wb.Recommender("als", factors=8, random_state=0).fit(frame(taken)).save(folder)
    with np.load(folder / "arrays.npz") as arrays:
        change(folder, dict(arrays))
    with pytest.raises(data.DataError, match=f"holds no recommender that can be read: .*({message})"):
        wb.load_model(folder)


def write(folder, arrays):
    np.savez(folder / "arrays.npz", **arrays)


def about(folder, **changes):
    path = folder / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize("split", ["user", "time"])
def test_early_stopping_holds_entries_out_and_keeps_the_best(taken, split):
    made = wb.Recommender(
        factors=16, iterations=40, early_stopping=True, split=split, random_state=0, regularization=5.0
    ).fit(frame(taken))
    recalls = [record["recall at 20"] for record in made.history_]
    assert made.n_iter_ == len(recalls) < 40
    assert int(np.argmax(recalls)) == len(recalls) - 4


def test_recall_is_the_share_of_what_was_held_out():
    held = sp.csr_array(np.array([[1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]]))
    assert lists.recall(np.array([[0, 2], [0, 1], [1, 0]]), held) == 0.25


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        (np.array([[1.0, np.nan], [1, 0]]), {}, "is nan; expected finite"),
        (np.array([[1.0, -1], [1, 0]]), {}, "is -1; implicit feedback counts from 0"),
        (np.ones((1, 3)), {}, "1 users, 3 items .*expected at least 2 users"),
        (np.zeros((3, 3)), {}, "0 entries"),
        (np.ones(3), {}, "expected a matrix"),
        (pd.DataFrame({"user": [1, None], "item": [1, 2]}), {}, "has no user in the column 'user'"),
        (pd.DataFrame({"a": [1]}), {}, "expected user, item"),
        (pd.DataFrame([[1, 2, 3]], columns=["user", "user", "item"]), {}, "'user' more than once"),
        (pd.DataFrame({"user": [1, 2], "item": [1, 2], "value": ["1", "many"]}), {}, "Row 1 has 'many' in the column"),
        (pd.DataFrame({"user": [1, 2], "item": [1, 2], "time": ["then", "now"]}), {}, "'time' holds no times"),
        (pd.DataFrame({"user": [1, 2], "item": [1, 2], "time": [1.0, None]}), {}, "Row 1 has no time"),
        ([[1, 2], [3]], {}, "not a matrix"),
        (sp.csr_array(np.eye(3, dtype=complex)), {}, "complex128; expected a matrix"),
        (sp.coo_array(np.ones(3)), {}, r"shape \[3\]"),
        (np.array([[1e39, 1], [1, 1]]), {}, "is inf; expected finite"),
        (
            np.array([[1e30, 1], [1, 1]]),
            {"factors": 4, "random_state": 0},
            "overflow float32; the largest value of the ratings is 1e\\+30",
        ),
        (np.eye(3), {"early_stopping": True, "split": "time"}, "have no times"),
        (np.eye(3), {"early_stopping": True}, "cannot be held out"),
    ],
)
def test_input_that_cannot_be_used_is_refused(source, options, message):
    with pytest.raises(data.DataError, match=message):
        wb.Recommender(**options).fit(source)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "alx"}, "Unknown model 'alx'. Did you mean 'als'"),
        ({"factors": 0}, "factors is 0"),
        ({"alpha": -1}, "alpha is -1"),
        ({"regularization": 0}, "regularization is 0"),
        ({"frequency_scaling": 3}, "frequency_scaling is 3"),
        ({"steps": 1.5}, "steps is 1.5"),
        ({"factors": 2049}, "factors is 2049; expected at most 2048"),
        ({"alpha": True}, "alpha is True"),
        ({"random_state": -1}, "random_state is -1"),
        ({"random_state": "x"}, "random_state is 'x'"),
    ],
)
def test_parameters_are_validated(options, message):
    with pytest.raises(data.DataError, match=message):
        wb.Recommender(**options)


def test_unknown_labels_and_unfitted_models_are_refused(taken):
    with pytest.raises(data.DataError, match="not fitted"):
        wb.Recommender().recommend([0])
    made = wb.Recommender(factors=2).fit(frame(taken))
    with pytest.raises(data.DataError, match="Unknown user 'nobody'; expected one of 117"):
        made.recommend("nobody")
    with pytest.raises(data.DataError, match="Unknown item 'x'; expected one of 54, such as \\['Title"):
        wb.Recommender(factors=2).fit(frame(taken).drop(columns="item")).similar_items("x")
    for unknown in (999, "x", 2.5, None, (3, "x"), pd.Timestamp("2020-01-01")):
        with pytest.raises(data.DataError, match="Unknown item"):
            made.similar_items(unknown)
    with pytest.raises(data.DataError, match="n is True"):
        made.similar_items(3, n=True)
    for some in ({"u0", "u1"}, iter(["u0", "u1"]), ("u0", "u1")):
        assert made.recommend(some, n=2).items.shape == (2, 2)
    assert made.recommend(pd.Series(["u0", "u1"]), n=2).items.shape == (2, 2)
    with pytest.raises(data.DataError, match="rows have 3 items"):
        wb.Recommender(factors=2).fit(np.eye(4)).recommend(np.eye(3))
    with pytest.raises(data.DataError, match=r"Unknown parameter 'factor'\. Did you mean 'factors'"):
        wb.train(taken, model="als", factor=3)


def test_ratings_of_a_data_set_and_zero_counts(tmp_path):
    path = tmp_path / "ratings.txt"
    path.write_text("a x 5\na y 3\nb x 4\n")
    found = read(path)
    assert found.matrix.toarray().tolist() == [[5, 3], [4, 0]]
    assert found.users.tolist() == ["a", "b"]
    zeros = sp.csr_array((np.zeros(1, np.float32), ([0], [1])), shape=(2, 2))
    assert read(zeros, negative="no").matrix.nnz == 0
    assert read(zeros).matrix.nnz == 1


def test_kernel_refuses_rows_that_are_too_wide():
    kernel = kernels.get("als_conjugate")
    arrays = [np.zeros(2, np.int32), np.zeros(0, np.int32), np.zeros(0, np.float32), np.zeros((1, 2049), np.float32)]
    ones = np.ones(2049, np.float32), np.ones(1, np.float32)
    with pytest.raises(kernels.KernelError, match="2049 columns; expected at most 2048"):
        kernel.cpu(*arrays, *ones, 1.0, 0.0, 1.0, 1.0, 3, np.zeros((1, 2049), np.float32))


def test_advice_compares_factors_with_ease_and_most_popular(monkeypatch):
    random = np.random.default_rng(0)
    user, item = random.integers(0, 200, 4000), random.integers(0, 80, 4000)
    kept = user % 4 == item % 4
    table = pd.DataFrame({"user": user[kept], "item": item[kept]})
    advice = wb.advise(table, model="als", factors=8, random_state=0)
    recall = advice.frame["recall"]
    assert min(recall["als"], recall["ease"]) > recall["most popular"] + 0.2
    assert advice.best == recall[["als", "ease"]].idxmax()
    assert advice.frame["bytes"]["ease"] == 4 * 80 * 80
    assert advice.items_equal is None
    assert advice.is_personal
    assert "No model recalls" not in repr(advice)
    at_random = pd.DataFrame({"user": user, "item": random.zipf(1.3, 4000) % 80})
    assert "No model recalls clearly more than a list of the most popular items" in repr(
        wb.advise(at_random, model="als")
    )
    monkeypatch.setattr(comparing, "FEWEST", 10)
    assert "it takes longer than als" in repr(wb.advise(table, model="als", factors=8, random_state=0))
    monkeypatch.setattr(ease, "bytes_of", lambda items: 2**60 * items)
    without = wb.advise(table, model="als", factors=8, random_state=0)
    assert without.best == "als"
    assert "ease: left out. EASE needs" in repr(without)
    assert without.items_equal is None


@pytest.mark.parametrize(
    ("text", "users", "items"),
    [
        ("user,item,rating\n01,007,3\n1,7,4\n2,007,05\n", ["01", "1", "2"], ["007", "7"]),
        ("user,item,rating\n1,7,3\n1,8,04\n2,7,05\n", [1, 2], [7, 8]),
        ("who,what,stars\n01,10,3\n1,100,4\n2,10,0\n", ["01", "1", "2"], [10, 100]),
    ],
    ids=["both", "values alone", "users by place"],
)
def test_ids_that_begin_with_0_stay_apart_from_those_without_it(tmp_path, text, users, items):
    path = tmp_path / "taken.csv"
    path.write_text(text)
    found = interactions.read(path)
    assert (found.users.tolist(), found.items.tolist()) == (users, items)
    assert found.matrix.nnz == 3


def plays(seed: int, users: int = 400, items: int = 150, spread: float = 1.6) -> sp.csr_array:
    """Plays of items by groups of users, counts of lognormal size."""
    random = np.random.default_rng(seed)
    liked = random.dirichlet(np.full(6, 0.2), users)[:, random.integers(0, 6, items)] / np.arange(1, items + 1) ** 0.7
    taken = random.random((users, items)) < 14 * liked / liked.sum(1, keepdims=True)
    counts = np.ceil(random.lognormal(2, spread, (users, items)))
    return sp.csr_array((taken * counts).astype(np.float32))


@pytest.mark.parametrize("seed", range(2))
def test_what_is_chosen_recalls_more_of_plays_than_usual_values(seed):
    train, held = recommender.split_entries(read(plays(seed)), "user", seed)
    chosen = wb.Recommender(factors=16, random_state=seed).fit(train)
    usual = wb.Recommender(factors=16, random_state=seed, regularization=0.01, confidence="linear").fit(train)
    assert chosen.chosen_.regularization > 0.1
    assert chosen.recall(held) > 1.1 * usual.recall(held)
    assert usual.chosen_ == Chosen(0.01, "linear")


def test_a_chosen_confidence_folds_in_alike_after_loading(tmp_path):
    made = wb.Recommender(factors=8, random_state=0, regularization=3.0, confidence="log").fit(plays(3))
    by_hand = wb.Recommender(factors=8, random_state=0, regularization=3.0, confidence="linear")
    by_hand.fit(logarithms_of(plays(3)))
    assert np.array_equal(made.user_factors_, by_hand.user_factors_)
    made.save(tmp_path / "model")
    again = wb.load_model(tmp_path / "model")
    assert again.chosen_ == Chosen(3.0, "log")
    rows = plays(4)
    for folded in (made, again):
        assert np.array_equal(folded.recommend(rows).scores, by_hand.recommend(logarithms_of(rows)).scores)


def logarithms_of(matrix: sp.csr_array) -> sp.csr_array:
    return sp.csr_array((np.log1p(matrix.data), matrix.indices, matrix.indptr), shape=matrix.shape)


def test_a_count_is_one_taken_item_to_ease_and_a_rating_is_not():
    counts = plays(5)
    ones = sp.csr_array((np.ones_like(counts.data), counts.indices, counts.indptr), shape=counts.shape)
    made, of_ones = wb.Recommender("ease").fit(counts), wb.Recommender("ease").fit(ones)
    assert np.array_equal(made.item_weights_, of_ones.item_weights_)
    assert np.array_equal(made.recommend(counts[:9]).scores, of_ones.recommend(ones[:9]).scores)
    assert np.array_equal(made.score([0, 1], [2, 3]), of_ones.score([0, 1], [2, 3]))
    assert made.recall(ones) == of_ones.recall(ones)
    explicit = wb.Recommender("ease", feedback="explicit").fit(counts)
    assert not np.allclose(explicit.item_weights_, made.item_weights_)


def test_few_entries_take_usual_values_and_ratings_are_chosen_by_their_error():
    few = plays(6, users=60)
    assert few.nnz < choosing.FEWEST
    assert wb.Recommender(random_state=0).fit(few).chosen_ == Chosen(choosing.USUAL, "linear")
    random = np.random.default_rng(0)
    taste = random.normal(size=(300, 3)) @ random.normal(size=(3, 80))
    ratings = np.where(random.random(taste.shape) < 0.15, np.clip(np.rint(3 + taste), 1, 5), 0)
    made = wb.Recommender(factors=8, random_state=0, feedback="explicit").fit(ratings)
    assert made.chosen_.confidence == "linear"
    train, held = recommender.split_entries(read(ratings), "user", 1)
    errors = [
        als.squared_error(held, one.user_factors_, one.item_factors_)
        for one in (
            wb.Recommender(factors=8, random_state=0, feedback="explicit", regularization=value).fit(train)
            for value in (made.chosen_.regularization, 0.01)
        )
    ]
    assert errors[0] < 0.9 * errors[1]


def test_what_overflows_is_not_chosen():
    def score(one: Chosen) -> float:
        if one.confidence == "linear":
            raise data.DataError("The factors overflow float32")
        return -abs(np.log10(one.regularization) - 2.5)

    chosen = choosing.choose(score, None, ("linear", "log"))
    assert (round(chosen.regularization, 1), chosen.confidence) == (316.2, "log")
    assert choosing.choose(score, 7.0, ("linear", "log")) == Chosen(7.0, "log")
    assert choosing.choose(score, 7.0, ("linear",)) == Chosen(7.0, "linear")


PLAYS = [("u1", "m7", "Kind of Blue", 12), ("u2", "m7", "Kind of Blue", 3), ("u1", "m8", "Blue Train", 40)]
"""Users, items, titles and plays, with tabs between them as a published list of plays has it, and no header."""


def written(path: Path, rows: list[tuple], separator: str) -> Path:
    path.write_text("".join(separator.join(map(str, row)) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("name", ["plays.tsv", "plays.txt", "plays.csv", "plays.dat", "blanks.txt"])
@pytest.mark.parametrize("places", [(0, 1), (0, 1, 3), (0, 1, 2, 3)], ids=["pairs", "values", "titles"])
def test_text_without_a_header_keeps_its_first_row(tmp_path, name, places):
    separator = {"plays.csv": ";", "plays.dat": "::", "blanks.txt": "  "}.get(name, "\t")
    titles = [title.replace(" ", "_") for _, _, title, _ in PLAYS]
    rows = [(user, item, title, plays) for (user, item, _, plays), title in zip(PLAYS, titles, strict=True)]
    found = interactions.read(written(tmp_path / name, [tuple(row[n] for n in places) for row in rows], separator))
    assert (found.users.tolist(), found.items.tolist()) == (["u1", "u2"], ["m7", "m8"])
    assert found.matrix.toarray().tolist() == ([[12, 40], [3, 0]] if 3 in places else [[1, 1], [1, 0]])
    assert (found.titles is None) == (2 not in places)
    if 2 in places:
        assert found.titles.tolist() == titles[1:]
        roles = {"user": "column 1", "item": "column 2", "value": "column 4", "title": "column 3"}
        assert found.columns == roles


def test_titles_are_the_items_where_ids_are_missing_or_have_several(tmp_path):
    rows = [(user, "" if user == "u2" else item, title, plays) for user, item, title, plays in PLAYS]
    found = interactions.read(written(tmp_path / "plays.tsv", rows, "\t"))
    assert found.items.tolist() == ["Blue Train", "Kind of Blue"]
    assert found.columns == {"user": "column 1", "item": "column 3", "value": "column 4"}


@pytest.mark.parametrize("name", ["u.data", "r.dat", "blanks.txt", "r.csv"])
def test_numbers_without_a_header_are_ids_values_and_times_and_repeated_pairs_add_up(tmp_path, name):
    separator = {"r.dat": "::", "blanks.txt": " ", "r.csv": ","}.get(name, "\t")
    rows = [(1, 30, 4, 880000001), (2, 30, 3, 880000002), (1, 30, 2, 880000009), (2, 4, 5, 880000003)]
    found = interactions.read(written(tmp_path / name, rows, separator))
    assert (found.users.tolist(), found.items.tolist()) == ([1, 2], [4, 30])
    assert found.matrix.toarray().tolist() == [[0, 6], [5, 3]]
    assert found.times.tolist() == [880000009, 880000003, 880000002]


def test_ids_that_begin_with_0_stay_apart_without_a_header_and_in_a_compressed_file(tmp_path):
    path = tmp_path / "r.dat.gz"
    path.write_bytes(gzip.compress(b"01::7::5\n1::07::3\n2::7::05\n"))
    found = interactions.read(path)
    assert (found.users.tolist(), found.items.tolist()) == (["01", "1", "2"], ["07", "7"])
    assert found.matrix.sum() == 13


def test_files_of_a_matrix_are_users_and_items(tmp_path):
    matrix = sp.random(9, 6, 0.4, "csr", random_state=1)
    sp.save_npz(tmp_path / "taken.npz", matrix)
    scipy.io.mmwrite(tmp_path / "taken.mtx", matrix)
    for name in ("taken.npz", "taken.mtx"):
        assert np.allclose(interactions.read(tmp_path / name).matrix.toarray(), matrix.toarray())


def test_a_file_that_is_not_there_is_answered_with_the_nearest_one(tmp_path):
    written(tmp_path / "plays.tsv", PLAYS, "\t")
    with pytest.raises(FileNotFoundError, match=r"There is no file .*play\.tsv\. Did you mean .*plays\.tsv"):
        interactions.read(tmp_path / "play.tsv")


def test_the_command_trains_saves_and_recommends(taken, tmp_path):
    path, model, out = tmp_path / "taken.csv", tmp_path / "model", tmp_path / "lists.csv"
    table = frame(taken)
    table.to_csv(path, index=False)
    runner = CliRunner()
    options = ["--model", "als", "--width", "6", "--epochs", "3", "--seed", "4", "--save", str(model)]
    done = runner.invoke(cli.app, ["train", str(path), *options])
    assert done.exit_code == 0, done.output
    assert "117 users, 54 items" in done.output
    assert "Columns: user 'user', item 'item', value 'count', time 'timestamp', title 'title'." in done.output
    made = wb.load_model(model)
    assert (made.factors, made.iterations, made.random_state) == (6, 3, 4)
    done = runner.invoke(cli.app, ["apply", str(model), str(path), "--out", str(out)])
    assert done.exit_code == 0, done.output
    lists_written = pd.read_csv(out)
    assert list(lists_written.columns) == ["user", "item", "title", "score"]
    assert not len(lists_written.merge(table, on=["user", "item"]))
    done = runner.invoke(cli.app, ["apply", str(model), str(path)])
    assert "rows in all. Type --out lists.csv" in done.output
    done = runner.invoke(cli.app, ["advise", str(path), "--model", "als"])
    assert done.exit_code == 0, done.output
    assert re.search(r"als: recall at 20 0\.\d+, .*\nease: recall at 20 0\.\d+, .*\nmost popular: ", done.output)
    assert f"Train it with: workbench train {path} --model" in done.output
    done = runner.invoke(cli.app, ["advise", str(path), "--model", "ease", "--json"])
    answer = json.loads(done.stdout)
    assert [one["model"] for one in answer["models"]] == ["als", "ease", "most popular"]
    assert answer["best"] in ("als", "ease")
    assert answer["items"] == 54


def test_the_code_of_the_page_runs(taken, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = frame(taken).replace({"user": {"u0": "anna", "u1": "ben"}}).drop(columns="title")
    table["item"] = table["item"].astype(str).replace({"3": "The Third Man"})
    table.to_csv("taken.csv", index=False)
    text = (Path(__file__).parents[2] / "docs" / "howto" / "recommend.md").read_text(encoding="utf-8")
    names = {"wb": wb}
    for code in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        exec(compile(code, "recommend.md", "exec"), names)
    assert repr(names["again"]) == repr(names["recommender"])


@pytest.mark.parametrize("dtype", [bool, np.int16, np.float64])
@pytest.mark.parametrize("kind", ["coo", "csc", "dense", "unsorted"])
def test_matrices_of_any_kind_give_the_same(taken, kind, dtype):
    counts = np.minimum(taken.toarray(), 1)
    expected = wb.Recommender(factors=3, random_state=0, iterations=2).fit(counts).item_factors_
    counts = counts.astype(dtype)
    source = (
        counts
        if kind == "dense"
        else sp.csr_array(counts)
        if kind == "unsorted"
        else sp.coo_array(counts).asformat(kind)
    )
    if kind == "unsorted":
        rows = [np.arange(a, b)[::-1] for a, b in zip(source.indptr, source.indptr[1:], strict=False)]
        order = np.concatenate(rows)
        source = sp.csr_array((source.data[order], source.indices[order], source.indptr), shape=source.shape)
    before = source.copy()
    made = wb.Recommender(factors=3, random_state=0, iterations=2).fit(source)
    np.testing.assert_array_equal(made.item_factors_, expected)
    if kind == "unsorted":
        np.testing.assert_array_equal(source.indices, before.indices)


def test_anndata_keeps_its_names(taken):
    anndata = pytest.importorskip("anndata")
    table = anndata.AnnData(taken.toarray())
    table.obs_names, table.var_names = [f"o{k}" for k in range(120)], [f"v{k}" for k in range(60)]
    made = wb.Recommender(factors=3, random_state=0).fit(table)
    assert made.recommend("o5", n=2).items[0, 0].startswith("v")


@pytest.mark.usefixtures("kept_threads")
@pytest.mark.parametrize("model", ["als", "ease"])
def test_factors_and_lists_have_the_same_bits_at_every_thread_count(taken, model, monkeypatch):
    share_out(monkeypatch)
    found = []
    for count in (1, TWO_AT_MOST):
        threads.set_threads(count)
        made = wb.Recommender(model, factors=20, random_state=0).fit(taken)
        found.append((*made.recommend(n=9)[:2], *(getattr(made, name) for name in vars(made) if "factors_" in name)))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


MIXED = pd.DataFrame({"user": ["a", "b", 3, 3], "item": [1, "x", 1, "x"]})


def test_labels_of_several_types_stay_apart(tmp_path):
    made = wb.Recommender(factors=2, random_state=0).fit(pd.concat([MIXED, MIXED[:2].assign(user="3")]))
    assert set(made.users_) == {"3", 3, "a", "b"}
    assert made.recommend([3, "3"], n=2, filter_seen=False).items.shape == (2, 2)
    with pytest.raises(data.DataError, match="text or numbers, not both, can be saved"):
        made.save(tmp_path / "model")


@pytest.mark.parametrize("is_loaded", [False, True])
def test_new_users_of_another_type_keep_it(is_loaded, tmp_path):
    made = wb.Recommender(factors=2, random_state=0).fit(pd.DataFrame({"user": ["1", "2"], "item": [1, 2]}))
    if is_loaded:
        made.save(tmp_path / "model")
        made = wb.load_model(tmp_path / "model")
    made.partial_fit(pd.DataFrame({"user": [1, 7], "item": [1, 1]}))
    assert made.users_.tolist() == ["1", "2", 1, 7]
    assert made.seen_.toarray().tolist() == [[1, 0], [0, 1], [1, 0], [1, 0]]


def test_positions_in_a_frame_are_those_of_the_matrix_that_was_fitted(taken):
    made = wb.Recommender(factors=4, random_state=0).fit(taken)
    before = made.seen_.toarray()
    more = pd.DataFrame({"user": [2, 2], "item": [5, 7], "count": [1.0, 2.0]})
    one_hot = sp.csr_array(([1.0, 2.0], ([0, 0], [5, 7])), shape=(1, 60))
    np.testing.assert_array_equal(made.recommend(more, n=3).items, made.recommend(one_hot, n=3).items)
    made.partial_fit(more)
    before[2, [5, 7]] += [1, 2]
    np.testing.assert_array_equal(made.seen_.toarray(), before)
    with pytest.raises(data.DataError, match="Unknown user 500; expected a position from 0 to 119"):
        made.partial_fit(more.assign(user=500))


def test_an_item_called_na_is_an_item(tmp_path):
    path = tmp_path / "taken.csv"
    path.write_text("user,item,count\n1,NA,2\n2,null,3\n")
    assert read(path).items.tolist() == ["NA", "null"]


def test_seeds_of_numpy_can_be_saved(taken, tmp_path):
    made = wb.Recommender(factors=np.int64(3), random_state=np.int64(3)).fit(taken)
    made.save(tmp_path / "model")
    assert wb.load_model(tmp_path / "model").random_state == 3


def test_early_stopping_ranks_some_of_many_users(taken, monkeypatch):
    ranked = []
    monkeypatch.setattr(recommender, "MOST_RANKED", 30)
    monkeypatch.setattr(recommender, "RANKED", 7)
    monkeypatch.setattr(lists, "recall", lambda places, held: ranked.append((len(places), held.nnz)) or 0.5)
    given = {"regularization": 1.0, "confidence": "linear"}
    wb.Recommender(factors=4, iterations=2, early_stopping=True, random_state=0, **given).fit(taken)
    assert [count for count, _ in ranked] == 2 * [7, 7, 7, 7, 2]
    assert all(entries >= count for count, entries in ranked)


def test_recall_by_blocks_is_that_of_all_rows(taken, monkeypatch):
    train, held = recommender.split_entries(interactions.Interactions(taken), "user", 0)
    for model in ("als", "ease"):
        made = wb.Recommender(model, factors=4, random_state=0).fit(train)
        expected = made.recall(held)
        monkeypatch.setattr(recommender, "RANKED", 7)
        assert made.recall(held) == pytest.approx(expected, rel=1e-12)
        monkeypatch.undo()


@pytest.mark.parametrize("kind", ["dask frame", "dask array", "torch sparse", "float16"])
def test_other_libraries_give_the_same(taken, kind):
    table = frame(taken)
    if kind == "dask frame":
        pytest.importorskip("dask.dataframe")
        import dask.dataframe

        source, same = dask.dataframe.from_pandas(table, npartitions=3), table
    elif kind == "dask array":
        source, same = pytest.importorskip("dask.array").from_array(taken.toarray(), chunks=40), taken
    elif kind == "torch sparse":
        source, same = pytest.importorskip("torch").from_numpy(taken.toarray()).to_sparse(), taken
    else:
        source, same = taken.toarray().astype(np.float16), taken
    one, other = (wb.Recommender(factors=3, random_state=0, iterations=2).fit(each) for each in (source, same))
    np.testing.assert_array_equal(one.item_factors_, other.item_factors_)


@pytest.mark.parametrize("options", [{}, {"feedback": "explicit"}, {"confidence": "given"}, {"frequency_scaling": 1.0}])
@pytest.mark.parametrize("solver", ["cg", "cholesky"])
def test_counts_of_heavy_tails_solve_the_normal_equations(options, solver):
    random = np.random.default_rng(11)
    counts = (random.random((200, 90)) < 0.1) * np.minimum(np.floor(random.pareto(0.6, (200, 90)) + 1), 10_000)
    counts[5], counts[:, 7] = 0, 0
    made = wb.Recommender(
        factors=8, iterations=1, steps=40, solver=solver, random_state=0, regularization=0.5,
        **{"confidence": "linear"} | options
    ).fit(counts)  # fmt: skip
    x, y = made.user_factors_.astype(float), made.item_factors_.astype(float)
    for item, column in enumerate(counts.T):
        taken = column > 0
        weight = taken * {"explicit": 1.0}.get(made.feedback, column - (made.confidence == "given"))
        target = taken * (column + (made.feedback == "implicit" and made.confidence == "linear"))
        matrix = (x.T * weight) @ x + 0.5 * max(taken.sum(), 1) ** made.frequency_scaling * np.eye(8)
        matrix += x.T @ x if made.feedback == "implicit" else 0
        rest = np.linalg.norm(matrix @ y[item] - x.T @ target)
        assert rest <= 1e-4 * np.linalg.norm(matrix) * np.linalg.norm(y[item])
    assert not y[7].any()
    assert not x[5].any()
