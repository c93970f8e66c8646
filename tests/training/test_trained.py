"""A saved model predicts as the trained one does, from any file of its features; damaged folders are refused."""

import hashlib
import itertools
import json
import shutil
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

from workbench import data, formats, models, training
from workbench.sweeps.problem import facts_of
from workbench.training import trained as trained_models
from workbench.training.setup import impossible_reason
from workbench.training.trained import VERSION, ModelFolderError, TrainedModel, load_model, why_not_kept

GENERATOR = np.random.default_rng(0)
BATCHES = training.Setup(model="logistic", batch_rows=16)
DENSE = {"format": "dense", "engine": "dense", "gradient": "dense", "update": "standard"}


def table(path, columns, rows=60):
    values = {
        "age": GENERATOR.integers(20, 60, rows),
        "city": GENERATOR.choice(["x", "y", "z"], rows),
        "clicked": GENERATOR.choice(["no", "yes"], rows),
    }
    lines = (",".join(str(values[name][row]) for name in columns) for row in range(rows))
    path.write_text(",".join(columns) + "\n" + "\n".join(lines) + "\n")
    return path


def trained(path, setup=BATCHES, reader="table", **parameters):
    model = setup.model
    made = data.load(reader, path=path, cache=False, **parameters)
    width = models.get(model).width or data.natural_width(made, models.get(model).target)
    y = data.targets(made, models.get(model).target, models.get(model).outputs or width)
    x = formats.astype(made.x, setup.dtype)
    x = x.toarray() if setup.format == "dense" else x
    run = training.make_run(setup, x, y, width, facts_of(made))
    list(run.events(epochs=2))
    return made, run, TrainedModel.of_run(run, made, reader, parameters)


@pytest.fixture
def saved(tmp_path):
    made, run, kept = trained(table(tmp_path / "train.csv", ["age", "city", "clicked"]))
    kept.save(tmp_path / "model")
    return tmp_path, made, run


def test_a_saved_model_gives_the_bits_of_the_trained_one(saved):
    folder, made, run = saved
    again = load_model(folder / "model")
    np.testing.assert_array_equal(again.scores(made.x), run.predict(made.x))
    predicted = again.apply(folder / "train.csv")
    assert predicted.classes == ("no", "yes")
    assert set(predicted.values) <= {"no", "yes"}
    np.testing.assert_allclose(predicted.probabilities.sum(axis=1), 1, rtol=1e-6)
    assert predicted.quality["accuracy"] == np.mean(predicted.values == np.array(made.classes)[made.y])
    assert set(predicted.quality) == {"accuracy", "AUC", "log loss"}


def test_columns_may_stand_in_another_order_and_labels_may_be_missing(saved):
    folder, _, _ = saved
    again = load_model(folder / "model")
    lines = [line.split(",") for line in (folder / "train.csv").read_text().splitlines()]
    (folder / "turned.csv").write_text("".join(f"{c},{b},9,{a}\n" for a, b, c in lines).replace(",9,", ",more,", 1))
    (folder / "bare.csv").write_text("".join(f"{b},{a}\n" for a, b, _ in lines))
    expected = again.apply(folder / "train.csv")
    np.testing.assert_array_equal(again.apply(folder / "turned.csv").probabilities, expected.probabilities)
    bare = again.apply(folder / "bare.csv")
    np.testing.assert_array_equal(bare.probabilities, expected.probabilities)
    assert (bare.quality, bare.note) == ({}, "it has no labels")


def test_unseen_categories_count_as_missing_and_other_features_are_refused_with_a_list(saved):
    folder, _, _ = saved
    again = load_model(folder / "model")
    (folder / "new.csv").write_text("age,city\n30,nowhere\n40,\n")
    first, second = again.apply(folder / "new.csv").probabilities[:, 1]
    assert 0 < first < 1
    assert 0 < second < 1
    (folder / "other.csv").write_text("size,clicked\n1,no\n")
    with pytest.raises(data.DataError, match="has no columns 'age', 'city'; its columns are size, clicked"):
        again.apply(folder / "other.csv")


def write_file(path, model):
    """Write a file with labels that the model can be trained on; return (path, name of its reader, parameters)."""
    if "fields" in model.needs:
        pairs = [(user, item) for user in range(12) for item in GENERATOR.choice(8, 3, replace=False)]
        path.write_text("user,item,rating\n" + "".join(f"u{u},i{i},{(u * i) % 5 + 1}\n" for u, i in pairs))
        return path, "ratings", {"implicit": model.target == "implicit"}
    labels = {"binary": ("no", "yes"), "classes": ("é", "b", "a b"), "multilabel": ("1", "2,3", "1,3")}
    names = labels.get(model.target, ("1.5", "-2", "7"))
    if model.target in ("binary", "classes"):
        rows = (f"{names[row % len(names)]},{row % 7},{'xyz'[row % 3]}" for row in range(50))
        path.write_text("label,age,city\n" + "\n".join(rows) + "\n")
        return path, "table", {"label": "label"}
    columns = (sorted(GENERATOR.choice(np.arange(1, 20), 4, replace=False)) for _ in range(50))
    lines = (" ".join(f"{c}:{1 + c % 3}" for c in row) for row in columns)
    path.write_text("".join(f"{names[row % 3]} {line}\n" for row, line in enumerate(lines)))
    return path, "svmlight", {"kind": model.target}


KEPT = [name for name in models.names() if not why_not_kept(models.get(name))]
STORED = {
    "csr": {},
    "float64": {"dtype": "float64"},
    "dense": DENSE,
    "held_float16": DENSE | {"storage": "float16"},
    "held_uint8": DENSE | {"storage": "uint8"},
    "exact": {"update": "exact", "optimizer": "adam"},
    "no_intercept": {"intercept": False},
}
READ_AGAIN = """
import sys, numpy as np, workbench as wb
for folder in sys.argv[1:]:
    model = wb.load_model(folder)
    rows, _ = model.read(folder + ".file")
    applied = model.apply(folder + ".file")
    known = {} if applied.probabilities is None else {"probabilities": applied.probabilities}
    np.savez(folder + ".npz", scores=model.scores(rows.x), values=applied.values, **known)
"""


def test_every_model_predicts_the_same_bits_in_a_new_process(tmp_path):
    expected = {}
    for name, (stored, settings) in itertools.product(KEPT, STORED.items()):
        setup = training.Setup(model=name, batch_rows=16, **settings)
        if impossible_reason(setup):
            continue
        folder = tmp_path / f"{name}.{stored}"
        path, reader, parameters = write_file(tmp_path / f"{folder.name}.file", models.get(name))
        made, run, kept = trained(path, setup, reader, **parameters)
        kept.save(folder)
        expected[folder] = kept, run.predict(formats.astype(made.x, setup.dtype)), made
    command = [sys.executable, "-c", READ_AGAIN, *map(str, expected)]
    subprocess.run(command, check=True, timeout=120)
    assert {folder.name.partition(".")[0] for folder in expected} == set(KEPT)
    for folder, (kept, scores, made) in expected.items():
        with np.load(f"{folder}.npz") as found:
            applied = kept.apply(f"{folder}.file")
            np.testing.assert_array_equal(found["scores"], kept.scores(made.x), str(folder))
            np.testing.assert_allclose(found["scores"], scores, rtol=1e-5, atol=1e-6, err_msg=str(folder))
            np.testing.assert_array_equal(found["values"], applied.values, str(folder))
            np.testing.assert_equal(found.get("probabilities"), applied.probabilities, str(folder))
            if kept.format == "csr":
                np.testing.assert_array_equal(found["scores"], scores, str(folder))


def test_a_saved_ranking_model_predicts_the_product_of_its_factors_and_no_quality(tmp_path):
    path, reader, parameters = write_file(tmp_path / "pairs.csv", models.get("bpr"))
    made, _, kept = trained(path, training.Setup(model="bpr", batch_rows=16), reader, **parameters)
    kept.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    users, items = made.x.indices.reshape(-1, 2).T
    factors = again.arrays["v"]
    applied = again.apply(path)
    np.testing.assert_allclose(applied.values, (factors[users] * factors[items]).sum(axis=1), rtol=1e-5, atol=1e-7)
    assert (applied.quality, applied.note[:18]) == ({}, "the order of items")


def test_text_keeps_its_words(tmp_path):
    (tmp_path / "t").write_text("".join(f"{'ham' if row % 2 else 'spam'}\tword{row % 5} more\n" for row in range(40)))
    _, _, kept = trained(tmp_path / "t", reader="text", label="first")
    kept.save(tmp_path / "model")
    (tmp_path / "bare").write_text("word1 word2 unheard of\nmore\n")
    assert len(load_model(tmp_path / "model").apply(tmp_path / "bare").values) == 2


def test_columns_that_were_kept_are_those_that_are_read(tmp_path):
    path = tmp_path / "t"
    path.write_text("".join(f"{row % 2} {1 + row % 3}:1 {5 + row % 9}:2\n" for row in range(60)))
    made = data.keep_features(data.load("svmlight", path=path, cache=False), 4)
    run = training.make_run(training.Setup(model="logistic"), made.x, data.targets(made, "binary"), 1)
    list(run.events(epochs=1))
    again = TrainedModel.of_run(run, made, "svmlight")
    np.testing.assert_array_equal(again.read(path)[0].x.toarray(), made.x.toarray())


def test_a_folder_that_is_there_needs_force(saved):
    folder, made, run = saved
    kept = TrainedModel.of_run(run, made)
    with pytest.raises(ModelFolderError, match=r"holds a model already.\nType force=True"):
        kept.save(folder / "model")
    kept.save(folder / "model", force=True)
    (folder / "mine").mkdir()
    (folder / "mine" / "notes").write_text("x")
    with pytest.raises(ModelFolderError, match="holds no model; choose another folder"):
        kept.save(folder / "mine", force=True)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (shutil.rmtree, "There is no model in"),
        (lambda f: (f / "model.json").write_bytes(b"{"), "is damaged"),
        (lambda f: (f / "model.json").write_bytes(b"[" * 100_000), "is damaged"),
        (lambda f: (f / "model.json").write_bytes(b"[]"), "does not describe one"),
        (lambda f: (f / "model.json").write_bytes(bytes(range(256))), "is damaged"),
        (lambda f: (f / "weights.npz").unlink(), "is damaged: weights.npz: No such file"),
        (lambda f: (f / "weights.npz").write_bytes(b"PK"), "does not hold what was written"),
        (lambda f: edit(f, version=VERSION + 1), f"is of version {VERSION + 1}; version {VERSION} is read. Update"),
        (lambda f: edit(f, version=1), f"is of version 1; version {VERSION} is read. Train and save it again"),
        (lambda f: edit(f, version="1"), r"model.json: version is '1'; expected 2\. Train"),
        (lambda f: edit(f, width=10**18), "model.json: width is 1000000000000000000; expected a whole number from 1"),
        (
            lambda f: edit(f, features=3),
            r"weights.npz has .*'w': 'dense float32 \[\d+, 1\]'.* has .*'w': 'dense float32 \[3, 1\]'",
        ),
        (lambda f: edit(f, labels=3), "model.json: labels is 3; expected an object"),
        (lambda f: edit(f, setup={"model": "nothing"}), "setup.model is 'nothing'; expected the name of a model"),
        (lambda f: edit(f, reader="nothing"), "reader is 'nothing'; expected the name of a data set"),
    ],
)
def test_a_damaged_folder_or_a_newer_one_is_refused_in_one_line(saved, damage, message):
    folder, _, _ = saved
    damage(folder / "model")
    with pytest.raises(ModelFolderError, match=message) as error:
        load_model(folder / "model")
    assert len(str(error.value).splitlines()) == 1


def edit(folder, **changes):
    about = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps(about | changes))


def test_a_model_of_a_graph_is_not_kept():
    made = data.load("block_graph", cache=False)
    y = data.targets(made, "classes")
    run = training.make_run(training.Setup(model="graph_convolution"), made.x, y, len(made.classes), facts_of(made))
    with pytest.raises(ModelFolderError, match="predicts from the graph that it was trained on"):
        TrainedModel.of_run(run, made)


def test_two_savers_without_force_do_not_replace_each_other(saved, monkeypatch):
    folder, made, run = saved
    kept = TrainedModel.of_run(run, made)
    monkeypatch.setattr(
        trained_models, "refuse_taken", lambda target, force: None
    )  # as looked at before the other saved
    with pytest.raises(FileExistsError):
        kept.save(folder / "model")
    monkeypatch.undo()
    assert load_model(folder / "model").predict(made.x).tolist() == kept.predict(made.x).tolist()


def test_a_reader_gets_one_model_while_another_replaces_it(saved, monkeypatch):
    """What is read of model.json and weights.npz belongs together, or is read again."""
    folder, made, run = saved
    real, seen = trained_models._read_about, []

    def replaced_after(path):
        about = real(path)
        if not seen:
            run.arrays["w"] += 1
            TrainedModel.of_run(run, made).save(path, force=True)
        seen.append(1)
        return about

    monkeypatch.setattr(trained_models, "_read_about", replaced_after)
    np.testing.assert_array_equal(load_model(folder / "model").scores(made.x), run.predict(made.x))
    assert len(seen) == 2


@pytest.mark.parametrize("model", ["logistic", "factorization_machine", "pruned_mlp"])
@pytest.mark.parametrize("claim", ["features", "width", "more arrays", "shape"])
def test_sizes_are_compared_before_memory_is_taken(tmp_path, model, claim):
    """A model.json that claims columns that the weights do not have."""
    made = data.load("uniform", rows=64, features=32, density=0.1, classes=2, cache=False)
    width = 1 if model == "logistic" else models.get(model).width or 2
    y = data.targets(made, models.get(model).target, models.get(model).outputs or width)
    run = training.make_run(training.Setup(model=model), made.x, y, width)
    TrainedModel.of_run(run, made).save(tmp_path / "m")
    arrays = formats.load(tmp_path / "m" / "weights.npz")
    about = json.loads((tmp_path / "m" / "model.json").read_text())
    if claim == "shape":
        arrays[next(iter(arrays))] = np.zeros((5, 5), np.float32)
    arrays |= {"z": np.zeros(9)} if claim == "more arrays" else {}
    about |= {claim: 10**12} if claim in about else {}
    formats.save(tmp_path / "m" / "weights.npz", arrays)
    about["weights_sha256"] = hashlib.sha256((tmp_path / "m" / "weights.npz").read_bytes()).hexdigest()
    (tmp_path / "m" / "model.json").write_text(json.dumps(about))
    tracemalloc.start()
    try:
        with pytest.raises(ModelFolderError, match=r"weights\.npz has"):
            load_model(tmp_path / "m")
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


def test_a_path_with_a_nul_character_holds_no_model_and_takes_none(saved):
    _, made, run = saved
    with pytest.raises(ModelFolderError, match=r"There is no model in 'a\\x00b'"):
        load_model("a\0b")
    with pytest.raises(ModelFolderError, match=r"'a\\x00b' has a NUL character; name another folder"):
        TrainedModel.of_run(run, made).save("a\0b")
