"""Scores, gradients and steps of models against the formula written in PyTorch."""

import numpy as np
import pytest

from tests.support.small_models import training_of
from workbench import models

ROWS, RATE, STEPS = 40, 0.1, 5


def machine(torch, x, p, fields):
    x_v = x @ p["v"]
    pairs = 0.5 * (x_v**2 - (x**2) @ p["v"] ** 2).sum(1, keepdim=True)
    return x @ p["w"] + pairs + p["b"]


def network(torch, x, p, fields):
    hidden = torch.relu(x @ p["e"] + p["c1"])
    hidden = torch.relu(hidden @ p["m2"] + p["c2"])
    return x @ p["w"] + hidden @ p["out"] + p["b"]


def factorization(torch, x, p, fields):
    users, items = (part @ v for part, v in zip(x.split(fields, 1), p["v"].split(fields), strict=True))
    return x @ p["w"] + (users * items).sum(1, keepdim=True) + p["b"]


def personalised(torch, x, p, fields):
    users, items = (part @ v for part, v in zip(x.split(fields, 1), p["v"].split(fields), strict=True))
    return (users * items).sum(1, keepdim=True)


def squared(torch, scores, y):
    return 0.5 * ((scores - y) ** 2).mean()


def logistic(torch, scores, y):
    return torch.nn.functional.binary_cross_entropy_with_logits(scores, y)


FORMULAS = {
    "factorization_machine": (machine, squared, {}),
    "factorization_machine_logistic": (machine, logistic, {}),
    "embedding_mlp": (network, logistic, {"model_options": "hidden=7, layers=2"}),
    "matrix_factorization": (factorization, squared, {}),
    "bpr": (personalised, logistic, {}),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_steps_are_those_of_the_formula(name):
    torch = pytest.importorskip("torch")
    formula, loss_of, settings = FORMULAS[name]
    run, *_ = training_of(models.get(name), options={"learning_rate": RATE}, shuffle=False, **settings)
    fields = run.given.facts.get("fields")
    tensors = {one: torch.tensor(array.copy(), requires_grad=True) for one, array in run.arrays.items()}
    events = run.epoch(0)
    for batch, _ in zip(run.feed.epoch(0), range(STEPS), strict=False):
        x, y = torch.tensor(batch.x.toarray()), torch.tensor(batch.y)
        loss = loss_of(torch, formula(torch, x, tensors, fields), y)
        slopes = torch.autograd.grad(loss, list(tensors.values()))
        assert next(events).loss == pytest.approx(loss.item(), rel=1e-10)
        with torch.no_grad():
            for tensor, slope in zip(tensors.values(), slopes, strict=True):
                tensor -= RATE * slope
        for parameter, tensor in tensors.items():
            np.testing.assert_allclose(run.arrays[parameter], tensor.detach().numpy(), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(run.predict(batch.x), formula(torch, x, tensors, fields).detach().numpy(), rtol=1e-9)


def test_the_formula_of_the_factorization_machine():
    run, x, _ = training_of(models.get("factorization_machine"), intercept=True)
    for _ in run.events(1):
        pass
    dense, (w, v, b) = x.toarray(), run.arrays.values()
    pairs = [sum(row[i] * row[j] * v[i] @ v[j] for j in range(40) for i in range(j)) for row in dense[:5]]
    np.testing.assert_allclose(run.predict(x[:5])[:, 0], dense[:5] @ w[:, 0] + pairs + b[0], rtol=1e-9)


def test_the_formula_of_matrix_factorization():
    run, x, _ = training_of(models.get("matrix_factorization"), intercept=True)
    for _ in run.events(1):
        pass
    (w, v, b), (users, _) = run.arrays.values(), run.given.facts["fields"]
    pairs = [sorted(x[[row]].indices) for row in range(5)]
    expected = [w[user, 0] + w[item, 0] + v[user] @ v[item] + b[0] for user, item in pairs]
    assert all(user < users <= item for user, item in pairs)
    np.testing.assert_allclose(run.predict(x[:5])[:, 0], expected, rtol=1e-9)
