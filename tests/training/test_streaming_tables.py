"""Tables that are trained on block by block: columns as the first rows say, the same bits as the table in memory."""

import numpy as np
import pytest
import scipy.sparse

import workbench as wb
from workbench import data, formats
from workbench.data import contract
from workbench.data.errors import DataError
from workbench.data.sources.table import BUCKETS_OF_STREAM
from workbench.data.tables import blocks as table_blocks
from workbench.training import streaming
from workbench.training.learner import Learner
from workbench.training.streaming import USUAL_MEMORY, Options, StreamTraining, do_steps, open_stream
from workbench.training.trained import TrainedModel, write_predictions

ROWS = 900


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    """Split text into blocks of some hundred rows, and Parquet too."""
    monkeypatch.setattr(table_blocks, "BLOCK_BYTES", 1 << 13)
    monkeypatch.setattr(table_blocks, "BLOCK_BYTES_COLUMN", 1)
    monkeypatch.setattr(table_blocks, "BLOCK_ROWS", 200)
    monkeypatch.setattr(streaming, "CHOOSING_ROWS", 50)


def frame(seed: int = 0, rows: int = ROWS):
    """Return a frame whose label depends on a category, a number and words; later rows have new values."""
    pd = pytest.importorskip("pandas")
    made = np.random.default_rng(seed)
    site, price = made.integers(0, 12 + np.arange(rows) // 30), made.lognormal(1, 1, rows).round(2)
    words = [f"buy the thing{number % 7} today at shop{number}" for number in site]
    y = (made.random(rows) < 1 / (1 + np.exp(-(np.sin(site) * 2 + np.log(price) - 1)))).astype(int)
    return pd.DataFrame({"site": [f"s{one}" for one in site], "price": price, "words": words, "clicked": y})


def trained(path, **options) -> StreamTraining:
    """Return a training on a table that has come to its end."""
    stream = open_stream("table", {"path": path, "label": "clicked"}, USUAL_MEMORY)
    made = StreamTraining(stream, Options(**options))
    for _ in made.events():
        pass
    return made


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_blocks_are_trained_as_the_table_in_memory_bit_for_bit(tmp_path, kind):
    path = tmp_path / f"a.{kind}"
    made = frame()
    made.to_csv(path, index=False) if kind == "csv" else made.to_parquet(path)
    streamed = trained(path, held_out=0.0)
    assert len(list(streamed.stream.blocks(0))) > 3
    columns = streamed.stream.facts["reread"]["columns"]
    read = data.load("table", path=path, columns=columns, cache=False)
    assert read.rows == ROWS
    assert read.features == streamed.features > 2 * BUCKETS_OF_STREAM
    whole, learner = Learner(streamed.learner.setup, streamed.learner.features, 1), streamed.learner
    do_steps(whole, read.x, data.targets(read, "binary"), np.arange(ROWS))
    assert np.array_equal(whole.arrays["w"], learner.arrays["w"])
    assert np.array_equal(whole.arrays["b"], learner.arrays["b"])


def test_a_model_of_a_table_is_saved_and_applied(tmp_path, capsys):
    path = tmp_path / "a.csv"
    frame(1, 3000).to_csv(path, index=False)
    wb.train(path, stream=True, label="clicked", passes=3, bits=10).save(tmp_path / "model")
    said = capsys.readouterr().err
    assert "Columns were guessed from the first" in said
    assert "hashed into 1,024 buckets" in said
    model = wb.load_model(tmp_path / "model")
    assert model.features == 2 * (1024 + 1) + 1
    assert model.apply(path).quality["AUC"] > 0.8
    assert np.array_equal(model.predict(frame(1, 3000)), model.apply(path).values)


def test_positions_of_blocks_and_of_another_file_of_rows(tmp_path):
    path = tmp_path / "a.csv"
    frame(2).to_csv(path, index=False)
    stream = contract.get("table").open_stream(1 << 20, {"path": path, "label": "clicked"})
    every, rest = (list(stream.blocks(start)) for start in (0, 2))
    assert [block.position for block in rest] == [block.position for block in every[2:]]
    assert all((one.x != other.x).nnz == 0 for one, other in zip(every[2:], rest, strict=True))
    exported = tmp_path / "b.parquet"
    data.export(data.load("uniform", rows=300, features=40, density=0.1, classes=3, seed=0), exported, "parquet")
    assert wb.train(exported, stream=True).classes == ("0", "1", "2")


@pytest.mark.parametrize(("label", "message"), [("", "has no label here"), ("x", "x")])
def test_a_late_label_that_is_missing_is_refused_and_a_late_name_is_a_class(tmp_path, label, message):
    path = tmp_path / "a.csv"
    made = frame(3).astype({"clicked": str})
    made.loc[ROWS - 1, "clicked"] = label
    made.to_csv(path, index=False)
    if not label:
        with pytest.raises(DataError, match=f"{ROWS + 1}: .*{message}"):
            trained(path)
        return
    assert trained(path).targets.labels.classes == ("0", "1", "x")


def test_a_late_word_among_numbers_is_refused_with_the_line(tmp_path):
    path = tmp_path / "a.csv"
    made = frame(4).astype({"price": str})
    made.loc[ROWS - 1, "price"] = "dear"
    made.to_csv(path, index=False)
    with pytest.raises(DataError, match=f"a.csv:{ROWS + 1}: column 'price' holds numbers, and 'dear'"):
        trained(path)


def test_vowpal_wabbit_text_is_hashed_and_trained_on(tmp_path):
    made = frame(5, 2000)
    lines = [
        f"{2 * y - 1} |s {site} |w {words}" for site, words, y in zip(made.site, made.words, made.clicked, strict=True)
    ]
    path = tmp_path / "a.vw"
    path.write_text("\n".join(lines) + "\n")
    model = wb.train(path, stream=True, bits=12, passes=2)
    assert model.features == 4096
    model.save(tmp_path / "model")
    assert wb.load_model(tmp_path / "model").apply(path).quality["AUC"] > 0.7


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("given", [{"stream": True}, {"search": 0}])
@pytest.mark.parametrize("late", ["", "label missing", "unknown class", "no label column", "skip"])
def test_tables_are_predicted_in_blocks_as_whole_bit_for_bit(tmp_path, monkeypatch, kind, given, late):
    pytest.importorskip("pandas")
    reading = {"unlabelled": "skip"} if late == "skip" else {}
    first, later = tmp_path / f"a.{kind}", tmp_path / f"b.{kind}"

    def write(frame, path):
        frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)

    write(frame(6), first)
    wb.train(first, label="clicked", **reading, **given).save(tmp_path / "model")
    model = wb.load_model(tmp_path / "model")
    rows = frame(7, 1500).astype({"clicked": str})
    if late in ("label missing", "skip"):
        rows.loc[1400, "clicked"] = ""
    if late == "unknown class":
        rows.loc[1400, "clicked"] = "7"
    write(rows.drop(columns="clicked") if late == "no label column" else rows, later)
    found = {}
    for name, is_whole in (("blocks", False), ("whole", True)):
        with monkeypatch.context() as patched:
            if is_whole:
                patched.setattr(TrainedModel, "_stream", lambda *given: None)
            parts = model.apply_in_blocks(later)
            count = write_predictions(tmp_path / f"{name}.csv", parts)
            found[name] = (tmp_path / f"{name}.csv").read_bytes(), count, parts.quality, parts.note
    assert found["blocks"] == found["whole"]
    assert found["blocks"][1] == 1500 - (late == "skip")
    assert bool(found["blocks"][2]) == (late in ("", "skip"))
    assert late != "" or len(list(model.apply_in_blocks(later))) > 3


def counts(seed: int, factor: float = 1.0, rows: int = 3000):
    """Return a frame whose label depends on three categories, next to counts of any size times a factor."""
    pd = pytest.importorskip("pandas")
    made = np.random.default_rng(seed)
    codes = made.integers(0, 12, (3, rows))
    y = (made.random(rows) < 1 / (1 + np.exp(-made.normal(0, 1, (3, 12))[np.arange(3)[:, None], codes].sum(0)))).astype(
        int
    )
    named = {f"c{place}": [f"v{code}" for code in column] for place, column in enumerate(codes)}
    sizes = {f"n{place}": np.exp(made.normal(2, 1.5, rows)).round() * factor for place in range(3)}
    return pd.DataFrame({**named, **sizes, "clicked": y})


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_large_counts_among_categories_leave_the_model_as_good(tmp_path, seed):
    found = {}
    for name, columns in (("counts", slice(None)), ("none", ["c0", "c1", "c2", "clicked"]), ("larger", slice(None))):
        frame = counts(seed, 2.0**20 if name == "larger" else 1.0)
        frame.loc[:, columns].to_csv(path := tmp_path / f"{name}.csv", index=False)
        found[name] = trained(path, passes=2, held_out=0.2)
    losses = {name: one.held_out_quality()["log loss"] for name, one in found.items()}
    assert losses["counts"] < 1.05 * losses["none"]
    assert losses["larger"] == pytest.approx(losses["counts"], rel=0.02)
    models = {name: one.trained("table", {"path": "", "label": "clicked"}) for name, one in found.items()}
    assert found["counts"].scaling.scale.max() > streaming.UNLIKE
    assert np.abs(models["counts"].arrays["w"]).max() < 10
    (x, y), model = found["counts"].sample.rows(found["counts"].learner.features), models["counts"]
    whole = scipy.sparse.csr_array(x * found["counts"].scaling.scale)[:, : model.features]  # as it came
    scores = whole @ model.arrays["w"] + model.arrays["b"]
    assert streaming.losses_of("binary", scores, y).mean() == pytest.approx(losses["counts"], rel=1e-3)


def test_an_interrupted_training_of_scaled_columns_goes_on_to_the_same_bits(tmp_path):
    counts(0).to_csv(path := tmp_path / "counts.csv", index=False)
    given = "table", {"path": str(path), "label": "clicked"}, Options(passes=2), USUAL_MEMORY
    whole, halted = streaming.FileTraining(*given), streaming.FileTraining(*given)
    for _ in whole.training.events():
        pass
    for _, _ in zip(range(5), halted.training.events(), strict=False):
        pass
    assert halted.training.scaling.scale is not None
    halted.save(tmp_path / "m", force=False)
    again = streaming.FileTraining(*given)
    assert again.resume(tmp_path / "m")
    for _ in again.training.events():
        pass
    for name, array in whole.model().arrays.items():
        np.testing.assert_array_equal(again.model().arrays[name], array)
    about, arrays = formats.load_about(tmp_path / "m" / streaming.STATE_FILE)
    for wrong in (arrays["scale"][:-1], 0 * arrays["scale"]):
        with pytest.raises(ValueError, match="sizes of its arrays"):
            StreamTraining(again.stream, Options(passes=2)).load_state(about, {**arrays, "scale": wrong})
