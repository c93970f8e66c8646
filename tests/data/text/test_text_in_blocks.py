"""Tables, Vowpal Wabbit's text and documents, converted block by block: as when read whole, in bounded memory."""

import gzip
import random
import tracemalloc

import numpy as np
import pytest

from tests.support.small_sets import same
from workbench import data
from workbench.data import DataError, contract
from workbench.data.stored import converting
from workbench.data.tables import assembly
from workbench.data.tables.assembly import Sample, Spread
from workbench.data.text import documents, vowpal_wabbit

pa = pytest.importorskip("pyarrow")

ROWS = 90
WORDS = ("red", "green", "blue", "Öl", "ice cream", "")


def tables(folder, rows, label, name="rows.csv"):
    source = random.Random(0)
    lines = ["size,level,colour,note,y"]
    for row in range(rows):
        note = " ".join(source.choices(WORDS, k=4))
        size = source.choice(["", str(source.gauss(0, 9)), "0", "1e3"])
        lines.append(f"{size},{source.random()},{source.choice(WORDS[:3])},{note},{label(row)}")
    (folder / name).write_text("\n".join(lines) + "\n")
    kinds = {
        "size": {"kind": "number", "bins": 7},
        "level": {"kind": "number", "encoding": "keep"},
        "colour": {"kind": "category"},
        "note": {"kind": "text", "buckets": 64},
    }
    return {"path": folder / name, "columns": {"columns": kinds}, "label": "y"}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr("workbench.data.tables.blocks.BLOCK_BYTES", 512)
    monkeypatch.setattr("workbench.data.tables.blocks.BLOCK_BYTES_COLUMN", 0)
    monkeypatch.setattr(vowpal_wabbit, "AT_ONCE", 256)
    monkeypatch.setattr(documents, "DOCUMENTS_AT_ONCE", 7)
    monkeypatch.setattr(converting, "ENTRIES_OF_BLOCK", 15)


def convert_and_compare(folder, name, **parameters):
    data.convert(name, folder / "X.sparse", shuffle=None, **parameters)
    again = data.load("sparse", path=folder / "X.sparse", whole=True)
    expected = data.load(name, cache=False, **parameters)
    assert same(again, expected)
    assert (again.name, again.source) == (expected.name, expected.source)
    assert again.facts == expected.facts
    assert len(list(contract.get(name).blocks(**parameters).blocks)) > 2
    return again


LABELS = {
    "whole numbers": lambda row: row % 3,
    "numbers": lambda row: row / 4,
    "text": lambda row: "ab"[row % 2],
    "numbers, then text": lambda row: row if row < ROWS / 2 else "many",
    "whole numbers, then others": lambda row: row if row < ROWS / 2 else 0.5,
}


@pytest.mark.parametrize("label", LABELS)
def test_a_table(label, tmp_path):
    kind = {"kind": "classes"} if label == "numbers, then text" else {}
    convert_and_compare(tmp_path, "table", **tables(tmp_path, ROWS, LABELS[label]), **kind)


def test_a_table_of_which_nothing_is_said(tmp_path):
    parameters = tables(tmp_path, ROWS, LABELS["text"])
    convert_and_compare(tmp_path, "table", path=parameters["path"], bins=4)


def test_a_parquet_file(tmp_path, monkeypatch):
    monkeypatch.setattr("workbench.data.tables.blocks.BLOCK_ROWS", 8)
    import pyarrow.parquet

    codes = pa.array(["b", None, "a"] * 30).dictionary_encode()
    table = pa.table({"code": codes, "x": pa.array([1.5, None, 3.0] * 30), "y": [1, 0] * 45})
    pyarrow.parquet.write_table(table, tmp_path / "rows.parquet")
    convert_and_compare(tmp_path, "table", path=tmp_path / "rows.parquet")


def test_rows_of_a_table_with_several_labels_are_read_whole(tmp_path):
    parameters = tables(tmp_path, ROWS, lambda row: ("a", '"a,b"', '""')[row % 3])
    data.convert("table", tmp_path / "X.sparse", kind="multilabel", **parameters)
    assert data.load("sparse", path=tmp_path / "X.sparse").classes == ("a", "b")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "number"}, r"rows.csv:2: column 'colour' holds numbers, and '\w+' is no finite one"),
        ({"kind": "category", "values": ["red"], "missing": 3}, "missing of column 'colour' is 3"),
    ],
)
def test_faults_of_a_table_are_told_with_their_line(tmp_path, changes, message):
    parameters = tables(tmp_path, ROWS, LABELS["text"])
    parameters["columns"]["columns"]["colour"] = changes
    with pytest.raises(DataError, match=message):
        data.convert("table", tmp_path / "X.sparse", **parameters)
    assert not (tmp_path / "X.sparse").exists()


def vw(folder, rows=ROWS, name="f{}", last="x"):
    source = random.Random(0)
    lines = [
        f"{row % 2} | {' '.join(name.format(source.randrange(99)) + ':0.5' for _ in range(5))}" for row in range(rows)
    ]
    (folder / "rows.vw").write_text("\n".join([*lines, f"1 | {last}"]) + "\n")
    return folder / "rows.vw"


@pytest.mark.parametrize(
    ("name", "last", "parameters"),
    [
        ("f{}", "x", {"bits": 6}),
        ("{}", "7", {}),
        ("{}", "7", {"features": 120, "columns": "numbered"}),
        ("{}", "7", {"columns": "hashed", "bits": 10}),
        ("{}", "x", {"bits": 10}),  # all but the last name are numbers
    ],
)
def test_vowpal_wabbit_text(name, last, parameters, tmp_path):
    convert_and_compare(tmp_path, "vw", path=vw(tmp_path, name=name, last=last), **parameters)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"features": 50}, r"rows.vw:\d+: column \d+ is out of range; with features=50 they are 0 to 49"),
        ({"columns": "hashed", "features": 50}, r"features is 50 and names are hashed to 2\*\*18 columns"),
        ({"bits": 0}, "bits is 0"),
    ],
)
def test_faults_of_vowpal_wabbit_text(parameters, message, tmp_path):
    with pytest.raises(DataError, match=message):
        data.convert("vw", tmp_path / "X.sparse", path=vw(tmp_path, name="{}", last="7"), **parameters)
    (tmp_path / "rows.vw").write_text("1 | 7\n" * 40 + "1 | x\n")
    with pytest.raises(DataError, match="has names other than whole numbers"):
        data.convert("vw", tmp_path / "X.sparse", path=tmp_path / "rows.vw", columns="numbered")


def texts(folder, rows=ROWS, label=lambda row: row % 3):
    source = random.Random(0)
    lines = [f"{label(row)}\t{' '.join(source.choices(WORDS, k=9)) if row % 5 else '. .'}" for row in range(rows)]
    (folder / "documents.txt").write_text("\n".join([*lines, "1\tlast", "\n"]))
    return {"path": folder / "documents.txt", "label": "first"}


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"weighting": "tfidf", "least_documents": 2},
        {"weighting": "binary", "most_features": 4, "ngrams": 2},
        {"hashed": 64},
        {"hashed": 64, "weighting": "tfidf"},
        {"vocabulary": ["red", "last", "none"], "weighting": "tfidf"},
    ],
)
def test_documents(parameters, tmp_path):
    convert_and_compare(tmp_path, "text", **texts(tmp_path), **parameters)


@pytest.mark.parametrize("label", LABELS)
def test_labels_of_documents(label, tmp_path):
    convert_and_compare(tmp_path, "text", **texts(tmp_path, label=LABELS[label]))


def test_documents_in_a_folder_and_labels_in_a_file(tmp_path):
    for number in range(20):
        (tmp_path / "mails" / str(number % 2)).mkdir(parents=True, exist_ok=True)
        (tmp_path / "mails" / str(number % 2) / f"{number}.txt").write_bytes(gzip.compress(b"some words %d" % number))
    convert_and_compare(tmp_path, "text", path=tmp_path / "mails")
    (tmp_path / "lines.txt").write_text("some words\n" * 20)
    (tmp_path / "labels.txt").write_text("0\n1.5\n" * 10)
    (tmp_path / "X.sparse").rename(tmp_path / "Y.sparse")
    both = {"path": tmp_path / "lines.txt", "labels": tmp_path / "labels.txt"}
    convert_and_compare(tmp_path, "text", **both)
    (tmp_path / "labels.txt").write_text("0\n" * 19)
    with pytest.raises(DataError, match="has 20 rows and 19 labels"):
        data.convert("text", tmp_path / "Z.sparse", **both)


WRITERS = {
    "table": lambda folder, rows: tables(folder, rows, LABELS["whole numbers"]),
    "vw": lambda folder, rows: {"path": vw(folder, rows), "bits": 10},
    "text": lambda folder, rows: texts(folder, rows) | {"hashed": 64},
}


@pytest.mark.parametrize("name", WRITERS)
def test_memory_does_not_grow_with_the_file(name, tmp_path, monkeypatch):
    monkeypatch.setattr("workbench.data.tables.blocks.BLOCK_BYTES", 1 << 12)
    monkeypatch.setattr(assembly, "MOST_SAMPLED", 64)
    monkeypatch.setattr(vowpal_wabbit, "AT_ONCE", 1 << 12)
    monkeypatch.setattr(documents, "DOCUMENTS_AT_ONCE", 100)
    peaks = []
    for number, rows in enumerate((1000, 1000, 4000)):  # the first to load the code
        parameters = WRITERS[name](tmp_path, rows)
        tracemalloc.start()
        data.convert(name, tmp_path / str(number), **parameters)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < 1.5 * peaks[1]


@pytest.mark.parametrize(("most", "error"), [(1 << 20, 0), (4096, 0.05)])
def test_quantiles_are_exact_where_all_numbers_are_held_and_near_where_a_sample_is(monkeypatch, most, error):
    monkeypatch.setattr(assembly, "MOST_SAMPLED", most)
    values = np.concatenate([np.random.default_rng(0).lognormal(size=20_000), np.zeros(2000)])
    np.random.default_rng(1).shuffle(values)
    sample = Sample()
    for part in np.split(values, 100):
        sample.add(part)
    cuts = sample.cuts(10)
    expected = np.unique(np.sort(values)[np.arange(1, 10) * len(values) // 10])
    expected = expected[expected > 0]
    assert len(cuts) == len(expected)
    np.testing.assert_allclose(
        np.searchsorted(np.sort(values), cuts), np.searchsorted(np.sort(values), expected), atol=error * len(values)
    )
    assert np.isin(cuts, values).all()


@pytest.mark.parametrize("scale", [1.0, 1e-300, 1e300])
def test_the_spread_of_parts_is_that_of_all(scale):
    numbers = np.random.default_rng(0).normal(3, 2, 1000) * scale
    spread = Spread()
    for part in ([], [0.0], numbers[:10], numbers[10:], [0.0]):
        spread.add(np.array(part))
    every = np.concatenate([[0, 0], numbers])
    assert spread.largest == np.abs(numbers).max()
    np.testing.assert_allclose(spread.deviation() / scale, np.std(every / scale), rtol=1e-12)
