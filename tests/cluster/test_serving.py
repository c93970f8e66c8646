"""Checkpoints of several ranks are applied to files as saved models are."""

import numpy as np
import pytest
import scipy.sparse
from typer.testing import CliRunner

from tests.support import shared_training as support
from workbench import data
from workbench.cluster.serving import load_checkpoint
from workbench.cluster.store import MpiStore, OneRank
from workbench.command import cli
from workbench.kvstore import StoreError
from workbench.sweeps.problem import make_problem
from workbench.training.trained import ModelFolderError, load_model

HUGE = 10**8


@pytest.fixture
def clicks(tmp_path):
    """A file of rows whose columns are among 10^8, and the rows: class 1 has entries in the second half of some."""
    made = np.random.default_rng(5)
    columns = np.sort(made.choice(HUGE - 1, 40, replace=False))
    lines, y = [], made.integers(0, 2, 120)
    for label in y:
        own = np.sort(made.choice(columns[20 * label : 20 * label + 25], 5, replace=False))
        lines.append(f"{label} " + " ".join(f"{column + 1}:1" for column in own))
    path = tmp_path / "clicks.txt"
    path.write_text("\n".join([*lines, f"0 {HUGE}:1"]) + "\n")
    return path


def settings(path, **more):
    file = {"dataset": "svmlight", "path": str(path), "rows": None, "features": None, "density": None}
    return support.configuration(**file, **{"model": "logistic", "width": 1, "epochs": 6, **more})


def test_a_table_of_10_8_rows_is_checkpointed_and_applied(clicks, tmp_path):
    of = settings(clicks, optimizer="adagrad")
    answers, _ = support.on_threads(of, 2, folder=str(tmp_path / "run"))
    made = load_checkpoint(tmp_path / "run")
    assert made.features < 60
    assert made.facts["features_before"] == HUGE
    applied = made.apply(clicks)
    assert applied.quality["accuracy"] > 0.85 > 0.6 < answers[0]["qualities"]["accuracy"]
    x = data.load("svmlight", path=str(clicks), cache=False).x
    assert np.array_equal(made.predict(x), applied.values)
    shown = CliRunner().invoke(cli.app, ["apply", str(tmp_path / "run"), str(clicks)])
    assert (shown.exit_code, "quality: accuracy" in shown.output) == (0, True)
    made.save(tmp_path / "model")
    assert np.array_equal(load_model(tmp_path / "model").apply(clicks).values, applied.values)


@pytest.mark.parametrize(
    ("changed", "every"),
    [
        ({"optimizer": "adagrad", "intercept": True}, 3),
        ({"optimizer": "sgd", "update": "exact", "decay": 0.01}, 1),
        ({"model": "embedding_mlp", "model_options": "hidden=4", "width": 1}, 1),
    ],
)
def test_the_model_of_a_checkpoint_has_the_scores_of_the_training(tmp_path, changed, every):
    of = support.configuration(**changed)
    answers, _ = support.on_threads(of, 2, folder=str(tmp_path), sync_every=every)
    x, y = make_problem(of).held_out
    made = load_checkpoint(tmp_path)
    quality, *_ = answers[0]["qualities"].values()
    assert made.model.quality(made.scores(x), y) == pytest.approx(quality, abs=1e-6)


def test_stored_rows_are_applied_as_the_file_that_they_were_made_of(clicks, tmp_path):
    stored = tmp_path / "clicks.sparse"
    data.convert(data.load("svmlight", path=str(clicks), cache=False), stored)
    of = settings(clicks).model_copy(update={"dataset": "sparse", "path": str(stored)})
    support.on_threads(of, 2, folder=str(tmp_path / "run"))
    made = load_checkpoint(tmp_path / "run")
    applied = made.apply(stored)
    assert applied.quality
    assert sorted(applied.values) == sorted(made.apply(clicks).values), "in random order"
    assert applied.quality == pytest.approx(made.apply(clicks).quality)
    other = tmp_path / "other.sparse"
    data.convert(data.load("uniform", rows=20, features=HUGE, density=1e-7, classes=3, cache=False), other)
    assert made.apply(other).note == "its classes are not those of the model"
    few = tmp_path / "few.sparse"
    data.convert(data.load("uniform", rows=20, features=9, density=0.5, classes=2, cache=False), few)
    with pytest.raises(data.DataError, match="has 9 features; the model expects 100000000"):
        made.apply(few)


def test_a_file_without_columns_that_were_trained_has_the_scores_of_no_entry(clicks, tmp_path):
    support.on_threads(settings(clicks), 2, folder=str(tmp_path / "run"))
    made = load_checkpoint(tmp_path / "run")
    x = scipy.sparse.csr_array(([1.0], [HUGE - 3], [0, 1, 1]), shape=(2, HUGE), dtype=np.float32)
    assert made.scores(x)[0] == made.scores(x)[1]


def test_checkpoints_of_scripts_and_damaged_ones_are_refused(tmp_path):
    store = MpiStore(OneRank())
    store.init("w", np.zeros((4, 1), np.float32))
    store.save_shards(tmp_path)
    with pytest.raises(ModelFolderError, match="does not say what it was trained on"):
        load_checkpoint(tmp_path)
    of = support.configuration().model_dump(mode="json")
    labels = {"kind": "classes", "classes": ["0", "1"], "positive": "1", "merged": [], "guess": "", "span": None}
    good = {"labels": labels, "facts": {}, "width": 1}
    for wrong in ({"labels": 3}, {"facts": {"columns_kept": [-1]}}, {"facts": 3}, {"width": "a"}):
        store.save_shards(tmp_path, {"cell": of, "data": good | wrong})
        with pytest.raises(StoreError, match=r"manifest.json is damaged"):
            load_checkpoint(tmp_path)
    store.save_shards(tmp_path, {"cell": {"model": "none"}, "data": good})
    with pytest.raises(StoreError, match=r"manifest.json is damaged"):
        load_checkpoint(tmp_path)
