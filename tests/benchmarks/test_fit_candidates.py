"""Contenders of other libraries compute what their model says, and are judged by what they would predict themselves."""

import itertools
import sys
import types
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from benchmarks.fit import candidates, child, torch_loop
from benchmarks.fit.candidates import pytorch, scikit_learn, vowpal_wabbit
from benchmarks.fit.torch_loop import batch_of, scores
from tests.support import fit_rows


@pytest.mark.parametrize("rule", ["adaptive", "ftrl"])
@pytest.mark.parametrize("model", ["logistic", "linear"])
def test_scores_are_what_vowpal_wabbit_predicts(model, rule):
    vowpalwabbit = pytest.importorskip("vowpalwabbit")
    rows = fit_rows.judge_for(model).rows
    rows = replace(rows, x=rows.x[:100], y=rows.y[:100], has_intercept=True)
    scorer, _ = vowpal_wabbit.refit(rows, {"rule": rule, "rate": 0.5}, 8)
    vw, kind = scorer.args[1], vowpalwabbit.PredictionType.SCALAR
    predicted = [vw.predict(line.strip(), prediction_type=kind) for line in vowpal_wabbit.lines(rows)]
    np.testing.assert_allclose(scorer(rows.x), predicted, rtol=1e-4, atol=1e-5)
    assert np.std(predicted) > 0.01


def test_vowpal_wabbit_learns_as_many_rows_as_a_point_has():
    pytest.importorskip("vowpalwabbit")
    rows = fit_rows.judge_for("logistic").rows
    for eighths, count in ((1, 15), (3, 45), (8, 120), (11, 240), (16, 240)):
        scorer, _ = vowpal_wabbit.refit(rows, {"rule": "adaptive", "rate": 0.5}, eighths)
        assert scorer.args[1].get_weighted_examples() == count


class FakeWorkspace:
    """What is asked of Vowpal Wabbit's Workspace: it writes the cache that it is told to, and keeps its options."""

    made: list

    def __init__(self, options):
        self.made.append(options)
        words = options.split()
        if "-k" in words:
            Path(words[words.index("--cache_file") + 1]).write_bytes(Path(words[words.index("-d") + 1]).read_bytes())
        else:
            self.read = Path(words[words.index("--cache_file") + 1]).read_bytes()

    def finish(self):
        """Nothing is left to write."""

    def get_weight(self, place, offset):
        """The weight of each column is its number."""
        return float(place)


def test_vowpal_wabbit_is_given_its_cache_before_the_clock_and_no_file_is_left(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "vowpalwabbit", types.SimpleNamespace(Workspace=FakeWorkspace))
    monkeypatch.setattr(vowpal_wabbit.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(FakeWorkspace, "made", [], raising=False)
    rows = replace(fit_rows.judge_for("logistic").rows, has_intercept=False)
    candidate = candidates.get("Vowpal Wabbit")
    leave = child.StopCondition(10.0)
    points = child.training_points(
        candidate, rows, {"rule": "ftrl", "rate": 0.5}, lambda scorer: 1.0, leave, ladder=(2, 20)
    )
    assert len(FakeWorkspace.made) == 1, "the cache is written before the first point is asked for"
    assert [point.number for point in points] == [2, 20]
    cache, part, passes = FakeWorkspace.made
    assert "--passes 1 --examples 30" in part
    assert "--passes 3" in passes
    assert all("--noconstant" in options and "-b 7" in options for options in (cache, part, passes))
    assert list(tmp_path.iterdir()) == []
    scorer, _ = vowpal_wabbit.refit(rows, {"rule": "adaptive", "rate": 0.5}, 8)
    assert len(FakeWorkspace.made) == 4, "the same rows are written once"
    assert scorer.args[1].read.decode().splitlines()[0] == next(vowpal_wabbit.lines(rows)).strip()
    np.testing.assert_allclose(scorer(rows.x), rows.x @ np.arange(40.0))


def test_dense_rows_are_trained_as_sparse_ones_where_a_library_treats_them_alike():
    toy, value = fit_rows.judge_for("logistic"), {"C": 1.0}
    plain, dense = (candidates.get(f"scikit-learn LogisticRegression lbfgs{end}") for end in ("", ", dense rows"))
    found = [toy.value(one.refit(toy.rows, value, 100)[0]) for one in (plain, dense)]
    assert found[0] == pytest.approx(found[1], rel=1e-3)


def test_dense_rows_reach_the_library_as_an_array_unless_they_are_too_sparse():
    seen = []

    def steps(rows, value):
        seen.append(rows.x)
        yield None

    plain = candidates.Candidate("toy", "competitor", (), lambda model: [], steps, why_not=candidates.one_number)
    dense, rows = torch_loop.densify_candidate(plain), fit_rows.judge_for("logistic").rows
    next(dense.steps(rows, {}))
    np.testing.assert_array_equal(seen[0], rows.x.toarray())
    assert (dense.name, dense.bytes_needed(rows), dense.why_not(rows)) == ("toy, dense rows", 120 * 40 * 4, "")
    few = replace(rows, x=scipy.sparse.csr_array((120, 4000), dtype=np.float32))
    assert "times the bytes of CSR; competitors try it up to 16 times" in dense.why_not(few)
    assert "one number a row" in dense.why_not(replace(rows, width=3))


def test_the_intercept_of_sparse_rows_learns_as_fast_as_that_of_dense_ones():
    toy = fit_rows.judge_for("logistic")
    rows = replace(toy.rows, y=np.ones_like(toy.rows.y), x=toy.rows.x * 0, has_intercept=True)
    rows.y[0] = 0  # all but one are yes: without features the intercept alone says so
    value = {"schedule": "constant", "rate": 0.1, "average": False}
    scores = {}
    for name in ("SGDClassifier constant", "SGDClassifier constant, dense rows"):
        every = itertools.islice(candidates.get(f"scikit-learn {name}").steps(rows, value), 16)
        scores[name] = float([scorer(toy.x) for scorer in every][-1][0])
    sparse, dense = scores.values()
    assert sparse == pytest.approx(dense, rel=1e-3)
    assert sparse > 1.0


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"strength": 0.1}, {"alpha": 0.1}),
        ({"schedule": "constant", "rate": 3.0}, {"alpha": 1e-6, "learning_rate": "constant", "eta0": 3.0}),
        (
            {"schedule": "invscaling", "rate": 3.0, "power": 0.5},
            {"alpha": 1e-6, "learning_rate": "invscaling", "eta0": 3.0, "power_t": 0.5},
        ),
    ],
)
def test_a_schedule_of_a_setting_is_what_scikit_learn_is_given(value, expected):
    assert scikit_learn.schedule_of(value) == expected


def test_a_solver_of_the_dual_problem_is_told_so():
    rows = fit_rows.judge_for("logistic").rows
    made = [scikit_learn.estimator(name, rows, {"C": 2.0}, 5) for name in ("liblinear", "liblinear dual")]
    assert [(one.solver, one.dual, one.C, one.max_iter) for one in made] == [
        ("liblinear", False, 2.0, 5),
        ("liblinear", True, 2.0, 5),
    ]


def test_pytorch_is_given_dense_rows_as_a_tensor():
    torch = pytest.importorskip("torch")
    toy = fit_rows.judge_for("logistic")
    rows = replace(toy.rows, x=toy.rows.x.toarray(), has_intercept=True)
    held, forward = pytorch.linear(rows, sparse=False)
    with torch.no_grad():
        held["w"] += torch.arange(40.0)[:, None]
        held["b"] += 5.0
    found = scores(forward, True, toy.x)
    np.testing.assert_allclose(found, toy.x @ np.arange(40.0)[:, None] + 5, rtol=1e-5)


def test_pytorchs_graph_convolution_is_that_of_the_paper():
    torch = pytest.importorskip("torch")
    rows = replace(fit_rows.judge_for("graph_convolution").rows, has_intercept=True)
    torch.manual_seed(0)
    held, forward = pytorch.network(rows)
    nodes = rows.facts["graph"]
    x, adjacency = nodes.x.toarray(), nodes.adjacency.toarray()
    w, c, out, b = (held[name].detach().numpy() for name in ("w", "c", "out", "b"))
    expected = adjacency @ np.maximum(adjacency @ (x @ w) + c, 0) @ out + b
    np.testing.assert_allclose(forward(False).detach().numpy(), expected, rtol=1e-4, atol=1e-5)
    forward(True)[: rows.x.shape[0]].square().sum().backward()
    dense = torch.tensor(w, requires_grad=True)
    hidden = torch.relu(torch.tensor(adjacency) @ (torch.tensor(x) @ dense) + torch.tensor(c))
    (torch.tensor(adjacency) @ hidden @ torch.tensor(out) + torch.tensor(b))[
        : rows.x.shape[0]
    ].square().sum().backward()
    np.testing.assert_allclose(held["w"].grad, dense.grad, rtol=1e-3, atol=1e-4)


def test_tensorflow_has_scores_of_rows_without_entries_at_the_end_of_a_batch():
    pytest.importorskip("tensorflow")
    toy = fit_rows.judge_for("logistic")
    kept = np.arange(120)[:, None] < 100
    rows = replace(toy.rows, x=scipy.sparse.csr_array(toy.rows.x.toarray() * kept), has_intercept=True)
    (scorer,) = itertools.islice(
        candidates.get("TensorFlow embedding_lookup_sparse").steps(
            rows, {"optimizer": "sgd", "batch_rows": 120, "rate": 0.5}
        ),
        1,
    )
    found = scorer(rows.x)
    assert found.shape == (120, 1)
    assert np.ptp(found[100:]) == 0.0
    assert np.ptp(found[:100]) > 0.0


def test_a_masked_network_changes_no_weight_outside_its_mask():
    torch = pytest.importorskip("torch")
    toy = fit_rows.judge_for("pruned_mlp")
    rows = replace(toy.rows, settings={"model_options": "hidden=16x16, density=0.3"})
    held, forward = pytorch.masked_perceptron(rows, sparse=False)
    first = held["w1"].detach().numpy().copy()
    assert 0 < np.count_nonzero(first) < 0.6 * first.size
    torch.nn.functional.cross_entropy(forward(batch_of(rows.x, 0, 50)), torch.tensor(rows.y[:50])).backward()
    gradient = held["w1"].grad.numpy()
    assert not gradient[first == 0].any()
    assert gradient[first != 0].any()
