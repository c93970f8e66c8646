"""Cells that differ in density differ in nothing else: the axis shows what density does."""

import numpy as np
import pytest

from tests.support.clocks import until
from workbench.sweeps import problem
from workbench.sweeps.problem import make_problem
from workbench.sweeps.spec import Configuration

FEATURES, ROWS = 300, 400


def write(folder, seed=0):
    """A svmlight file of 400 rows of 3 classes, of skewed lengths; each row has a column of its own beside others."""
    random = np.random.default_rng(seed)
    lines = []
    for row in range(ROWS):
        label = row % 3
        others = np.unique(random.integers(0, 100, int(random.lognormal(2, 0.5)) + 1) + 50 * label)
        entries = " ".join(f"{column + 1}:{random.uniform(0.5, 2):.3f}" for column in others)
        lines.append(f"{label} {entries}")
    path = folder / "rows.svm"
    path.write_text("\n".join(lines) + f"\n0 {FEATURES}:1\n")
    return str(path)


@pytest.fixture
def configuration(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "cache"))
    return Configuration(dataset="svmlight", path=write(tmp_path), model="softmax", batch_rows=64)


AXIS = (0.01, 0.02, None, 0.06, 0.12)


def lengths(x):
    return np.diff(x.indptr)


@pytest.mark.parametrize("epochs", [0, 2])
def test_everything_but_the_density_is_equal_along_the_axis(configuration, epochs):
    made = [make_problem(configuration.model_copy(update={"density": density, "epochs": epochs})) for density in AXIS]
    sizes = {
        (each.x.shape, each.width, each.rows_total, each.dataset.classes, None if not epochs else each.x_held_out.shape)
        for each in made
    }
    assert len(sizes) == 1
    assert made[0].x.shape[0] >= configuration.batch_rows
    natural = made[2]
    for density, each in zip(AXIS, made, strict=True):
        np.testing.assert_array_equal(each.y, natural.y)
        if density:
            assert each.x.nnz == round(density * each.x.shape[0] * each.x.shape[1])
        variation = [lengths(one.x).std() / lengths(one.x).mean() for one in (each, natural)]
        assert variation[0] == pytest.approx(variation[1], rel=0.1)


def test_rows_held_out_are_not_joined_into_training(tmp_path):
    """Every row stores a column that no other one does: a joined row tells of whom it was made."""
    path = tmp_path / "own.svm"
    path.write_text("".join(f"{row % 2} {row + 1}:1\n" for row in range(100)))
    configuration = Configuration(dataset="svmlight", path=str(path), model="logistic", epochs=1, density=0.05)
    made = make_problem(configuration)
    trained, held_out = (set(np.unique(x.indices)) for x in (made.x, made.x_held_out))
    assert made.x.nnz == 80 * 5
    assert trained
    assert held_out
    assert not trained & held_out
    whole = make_problem(configuration.model_copy(update={"epochs": 0}))  # joined before it is parted, rows are shared
    train, rest = problem.data.split(whole.dataset, problem.HELD_OUT, 0)
    assert set(np.unique(train.x.indices)) & set(np.unique(rest.x.indices))


def test_a_density_that_is_out_of_reach_says_the_highest(configuration):
    with pytest.raises(problem.data.DataError, match=r"cannot reach density 0.9: .* at most"):
        make_problem(configuration.model_copy(update={"density": 0.9}))


def test_what_an_edited_file_would_make_is_not_taken_from_the_cache(configuration, monkeypatch):
    made = []
    real = problem._make
    monkeypatch.setattr(problem, "_make", lambda **parameters: made.append(parameters) or real(**parameters))

    def is_cached():
        before = len(made)
        make_problem(configuration)
        return len(made) == before

    until(is_cached)  # a file written a moment ago is not trusted to be what it was
    monkeypatch.setattr(problem, "_code", lambda: "edited")
    assert not is_cached()
