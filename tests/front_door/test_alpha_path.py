"""A path over alpha, and `workbench train --l1-ratio`."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import lasso_path
from typer.testing import CliRunner

import workbench as wb
from workbench.command import cli


def data(seed: int = 0) -> tuple[scipy.sparse.csc_array, np.ndarray]:
    """Rows of 40 sparse columns, and numbers that four of them make up."""
    generator = np.random.default_rng(seed)
    x = scipy.sparse.random_array((300, 40), density=0.2, rng=generator, format="csc")
    return x, x[:, :4].sum(axis=1) * 2 + generator.normal(size=300) / 3


def test_a_path_is_that_of_scikit_learn() -> None:
    x, y = data()
    found = wb.path(x, y, alphas=8, fit_intercept=False, tol=1e-9)
    _, coefs, _ = lasso_path(x, y, alphas=found.alphas, tol=1e-12, max_iter=100_000)
    np.testing.assert_allclose(np.vstack([coef.toarray() for coef in found.coefs]), coefs.T, atol=1e-6)
    assert found.nonzeros.tolist() == np.count_nonzero(coefs, axis=0).tolist()
    assert (found.gaps <= 1e-9).all()
    assert (found.seconds > 0).all()
    assert (found.sweeps[1:] > 0).all()
    assert found.scores(x).shape == (8, 300, 1)
    assert len(repr(found).splitlines()) == len(found) + 1


@pytest.mark.parametrize("is_dense", [False, True])
def test_classes_and_given_alphas(is_dense: bool) -> None:
    x, y = data(1)
    labels = np.digitize(y, np.quantile(y, [0.3, 0.6])).astype(str)
    found = wb.path(x.toarray() if is_dense else x, labels, alphas=[1e-3, 1e-2], l1_ratio=0.5)
    assert found.alphas.tolist() == [1e-2, 1e-3]
    assert found.coefs[0].shape == (3, 40)
    assert found.classes.tolist() == ["0", "1", "2"]
    single = wb.SparseClassifier(alpha=1e-2, l1_ratio=0.5).fit(x, labels)
    np.testing.assert_allclose(found.coefs[0].toarray(), single.coef_, atol=0.05)
    two = wb.path(x, labels == "1", alphas=3)
    assert two.coefs[-1].shape == (1, 40)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"l1_ratio": 0}, "l1_ratio is 0; expected a number above 0"),
        ({"alphas": 0}, "alphas is 0; expected a count"),
        ({"alphas": [1.0, 0.0]}, "not above 0"),
        ({"alphas": []}, "or none"),
        ({"model": "adam"}, "Unknown model of a path 'adam'"),
        ({"model": "logistic"}, "classes; expected 2"),
        ({"sample_weight": -np.ones(300)}, "[Nn]egative"),
    ],
)
def test_what_a_path_refuses(parameters: dict, words: str) -> None:
    x, y = data()
    y = y.round() if "model" in parameters else y
    with pytest.raises(ValueError, match=words):
        wb.path(x, y, **parameters)


def file_of(folder: Path) -> Path:
    """A text file of rows, two classes."""
    x, y = data(2)
    lines = [
        f"{int(label)} " + " ".join(f"{j + 1}:{x_j:.4f}" for j, x_j in enumerate(row) if x_j)
        for row, label in zip(x.toarray(), y > np.median(y), strict=True)
    ]
    path = folder / "rows.svm"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_command_trains_with_an_l1_penalty_and_keeps_the_model(tmp_path: Path) -> None:
    source, kept = file_of(tmp_path), tmp_path / "model"
    came = CliRunner().invoke(
        cli.app, ["train", str(source), "--l1-ratio", "1", "--decay", "0.01", "--save", str(kept)]
    )
    assert came.exit_code == 0, came.output
    assert "of 40 weights are not zero" in came.output
    assert 0 < np.count_nonzero(wb.load_model(kept).arrays["w"]) < 40
    came = CliRunner().invoke(cli.app, ["train", str(source), "--l1-ratio", "0.5"])
    assert "chosen by coordinate descent from 20 settings" in came.output
    came = CliRunner().invoke(cli.app, ["train", str(source), "--l1-ratio", "1", "--optimizer", "adam"])
    assert came.exit_code != 0
    assert "--optimizer is given, too" in " ".join(came.output.replace("│", " ").split())
