"""Contenders of other libraries compute what their model says, and are judged by what they would predict themselves."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support import fit_rows
from workbench.bench.fit.contenders import pytorch_graph, pytorch_pruned, vowpal_wabbit
from workbench.bench.fit.torch_loop import batch_of


@pytest.mark.parametrize("rule", ["adaptive", "ftrl"])
@pytest.mark.parametrize("model", ["logistic", "linear"])
def test_scores_are_what_vowpal_wabbit_predicts(model, rule):
    vowpalwabbit = pytest.importorskip("vowpalwabbit")
    rows = fit_rows.judge_for(model).rows
    rows = replace(rows, x=rows.x[:100], y=rows.y[:100], has_intercept=True)
    learner = vowpal_wabbit.Learner(rows, {"rule": rule, "rate": 0.5})
    for example in learner.made(0, 100):
        learner.vw.learn(example)
    kind = vowpalwabbit.PredictionType.SCALAR
    predicted = [learner.vw.predict(example, prediction_type=kind) for example in learner.made(0, 100)]
    np.testing.assert_allclose(learner.scores(rows.x), predicted, rtol=1e-4, atol=1e-5)
    assert np.std(predicted) > 0.01


def test_rows_learned_again_are_the_same_examples_unless_they_take_too_much_memory(monkeypatch):
    pytest.importorskip("vowpalwabbit")
    toy, value = fit_rows.judge_for("logistic"), {"rule": "adaptive", "rate": 0.5}
    learner = vowpal_wabbit.Learner(toy.rows, value)
    assert learner.made(0, 10)[3] is learner.made(0, 10)[3]
    monkeypatch.setattr(vowpal_wabbit, "BYTES_KEPT", 0)
    anew = vowpal_wabbit.Learner(toy.rows, value)
    assert anew.made(0, 10)[3] is not anew.made(0, 10)[3]


def test_pytorchs_graph_convolution_is_that_of_the_paper():
    torch = pytest.importorskip("torch")
    rows = replace(fit_rows.judge_for("graph_convolution").rows, has_intercept=True)
    torch.manual_seed(0)
    held, forward = pytorch_graph.network(rows)
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


def test_a_masked_network_changes_no_weight_outside_its_mask():
    torch = pytest.importorskip("torch")
    toy = fit_rows.judge_for("pruned_mlp")
    rows = replace(toy.rows, settings={"model_options": "hidden=16x16, density=0.3"})
    held, forward = pytorch_pruned.masked(rows, sparse=False)
    first = held["w1"].detach().numpy().copy()
    assert 0 < np.count_nonzero(first) < 0.6 * first.size
    torch.nn.functional.cross_entropy(forward(batch_of(rows.x, 0, 50)), torch.tensor(rows.y[:50])).backward()
    gradient = held["w1"].grad.numpy()
    assert not gradient[first == 0].any()
    assert gradient[first != 0].any()
