"""Folders of stored rows: a set comes back equal, in any order and cut, and what is damaged is refused."""

import dataclasses
import json
import os
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from tests.support.small_sets import labelled, same, targets
from tests.support.stored_sets import block, blocks, drawn, stored, whole
from workbench import data
from workbench.data import DataError
from workbench.data.stored import arrays, converting
from workbench.data.stored.folder import Folder
from workbench.data.stored.meta import META, write_meta


def edit(folder, change):
    """Write meta.json anew after `change(table)`."""
    path = folder / META
    table = json.loads(path.read_text())
    change(table)
    path.write_text(json.dumps(table))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_set_comes_back_equal(tmp_path, dtype):
    made = drawn(groups=np.arange(300) // 7, dtype=dtype)
    stored(tmp_path / "X.sparse", made)
    again = whole(tmp_path / "X.sparse")
    assert same(again, made)
    assert again.x.dtype == dtype
    assert np.array_equal(again.groups, made.groups)
    for name in ("name", "labels", "source", "licence", "facts"):
        assert getattr(again, name) == getattr(made, name)
    stored_arrays = {
        name: np.load(tmp_path / "X.sparse" / f"{name}.npy", mmap_mode="r") for name in ("indptr", "indices", "data")
    }
    for name, array in stored_arrays.items():
        assert np.array_equal(array, getattr(made.x, name))
    again = pickle.loads(pickle.dumps(data.load("sparse", path=tmp_path / "X.sparse").x))
    assert np.array_equal(again.read(5, 9).toarray(), made.x[5:9].toarray())


@pytest.mark.parametrize(
    "made",
    [
        labelled(),
        targets((0.5, -1, 2, 2, 3, 4)),
        data.Dataset(
            "two", labelled().x, np.eye(6, 2), data.Labels("numbers", span=(0.0, 1.0)), "here", "none", None, {}
        ),
        data.Dataset(
            "multi", labelled().x, np.eye(6, 3, dtype=np.uint8), data.Labels("multilabel", ("a", "b", "c")), "", ""
        ),
    ],
    ids=["classes", "numbers", "columns", "multilabel"],
)
@pytest.mark.parametrize("shuffle", [None, 1])
def test_labels_of_every_kind_keep_type_and_meaning(tmp_path, made, shuffle):
    again = stored(tmp_path / "X.sparse", made, shuffle)
    assert (again.labels, again.y.dtype, again.y.shape) == (made.labels, made.y.dtype, made.y.shape)
    came, went = again.x.read(0, 6).toarray(), made.x.toarray()
    for row, label in zip(came, again.y, strict=True):
        (place,) = np.flatnonzero((went == row).all(1))
        assert np.array_equal(label, made.y[place])


def test_values_that_are_all_one_are_not_stored(tmp_path):
    ones = drawn(values="ones")
    stored(tmp_path / "X.sparse", ones)
    assert not (tmp_path / "X.sparse" / "data.npy").exists()
    assert same(whole(tmp_path / "X.sparse"), ones)


@pytest.mark.parametrize("groups", [None, np.random.default_rng(0).integers(0, 40, 300)])
@pytest.mark.parametrize("buffer_bytes", [1, 2000, 10**6])
def test_shuffled_rows_have_an_order_of_the_seed(tmp_path, monkeypatch, groups, buffer_bytes):
    monkeypatch.setattr(converting, "BUFFER_BYTES", buffer_bytes)
    labels = data.Labels("numbers", span=(0.0, 299.0))
    made = dataclasses.replace(drawn(groups=groups), y=np.arange(300.0), labels=labels)
    orders = []
    for number, seed in enumerate((0, 0, 1)):
        stored(tmp_path / str(number), made, seed)
        orders.append(whole(tmp_path / str(number)))
    assert same(orders[0], orders[1])
    assert not same(orders[0], orders[2])
    for order in orders:
        rows = order.y.astype(int)
        assert sorted(rows) == list(range(300))
        assert np.array_equal(order.x.toarray(), made.x.toarray()[rows])
        if groups is not None:
            assert np.array_equal(order.groups, groups[rows])
            is_same = np.diff(order.groups) == 0
            assert np.count_nonzero(~is_same) == 39
            assert (np.diff(rows)[is_same] > 0).all()


def test_every_place_is_as_likely_for_a_row(tmp_path):
    made = data.Dataset(
        "ranks", data.load("uniform", rows=64, features=4, density=0.5, cache=False).x, np.arange(64.0),
        data.Labels("numbers", span=(0.0, 63.0)), "", "",
    )  # fmt: skip
    places = np.array([stored(tmp_path / str(seed), made, seed).y for seed in range(40)])
    assert abs(places[:, :32].mean() - 31.5) < 5 * np.sqrt(64**2 / 12 / (40 * 64))
    assert abs(np.corrcoef(places.ravel(), np.tile(np.arange(64), 40))[0, 1]) < 0.1
    assert np.unique(places[:, 0]).size > 20


def test_rows_of_a_group_stay_together_and_are_never_parted(tmp_path):
    made = drawn(groups=np.random.default_rng(0).integers(0, 40, 300))
    again = stored(tmp_path / "X.sparse", made, 0)
    assert np.count_nonzero(np.diff(again.groups)) == len(np.unique(made.groups)) - 1
    train, rest = data.split(again, 0.2)
    assert not set(train.groups) & set(rest.groups)
    assert 40 <= rest.rows <= 80
    assert np.array_equal(np.concatenate([train.y, rest.y]), again.y)


def test_what_needs_the_rows_in_memory_says_so(tmp_path):
    kept = stored(tmp_path / "X.sparse", drawn(), 0)
    for call in (
        lambda: data.keep_features(kept, 3),
        lambda: data.with_density(kept, 0.01),
        lambda: data.shuffle_rows(kept),
        lambda: data.take(kept, np.arange(3)[::-1]),
    ):
        with pytest.raises(DataError, match=r"X.sparse is read row by row .* Load it with whole=True"):
            call()
    assert data.keep_rows(kept, 50).x.read(0, 50).shape == (50, 40)
    part = data.take(kept, np.arange(20, 30))
    assert np.array_equal(part.x.read(0, 10).toarray(), kept.x.read(20, 30).toarray())
    with pytest.raises(DataError, match="has a graph, which blocks of rows do not have"):
        data.convert(dataclasses.replace(drawn(4), graph=sp.csr_array(np.eye(4))), tmp_path / "Y.sparse")
    assert "300 rows x 40 features" in repr(kept)


def test_rows_in_the_order_they_came_are_not_parted(tmp_path):
    kept = stored(tmp_path / "X.sparse", drawn())
    for call in (lambda: data.split(kept), lambda: data.keep_rows(kept, 10)):
        with pytest.raises(DataError, match=r"stands in the order it came in.*Convert it with shuffle, a seed"):
            call()


@pytest.mark.parametrize("shuffle", [None, 0])
def test_a_stored_set_can_be_converted_again(tmp_path, shuffle):
    made = drawn()
    kept = stored(tmp_path / "X.sparse", made)
    stored(tmp_path / "Y.sparse", kept, shuffle)
    assert same(whole(tmp_path / "Y.sparse"), made) == (shuffle is None)


def first(folder, name):
    return folder / f"{name}.npy"


def rewrite(folder, name, change, with_checksum=True):
    """Write an array anew, of the same size; with its checksum if another check is to notice it."""
    array = np.load(first(folder, name))
    change(array)
    np.save(first(folder, name), array)
    if with_checksum:
        write_meta(folder, Folder(folder).meta)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / META).unlink(), "has no meta.json: it holds no rows, or its conversion did not end"),
        (
            lambda f: (f / META).rename(f / "manifest.json"),
            r"is a folder of shards, .*\. Convert the data again: workbench",
        ),
        (lambda f: (f / META).write_text("{"), "meta.json cannot be read as a folder of stored rows"),
        (lambda f: (f / META).write_text("[]"), "does not describe stored rows"),
        (lambda f: edit(f, lambda t: t.update(version=3)), "is of version 3; expected 2"),
        (lambda f: edit(f, lambda t: t.pop("labels")), "is damaged: labels is missing; expected an object"),
        (
            lambda f: edit(f, lambda t: t.update(shape=[7, 40])),
            r"indptr.npy holds int64 \[301\]; meta.json says .* \[8\]",
        ),
        (lambda f: edit(f, lambda t: t.update(nnz=3)), r"(indices|data).npy holds .*\[3\]"),
        (lambda f: edit(f, lambda t: t.update(shape=[300, -1])), r"shape is \[300, -1\]; expected rows and features"),
        (lambda f: edit(f, lambda t: t.update(shape=[300, 10**18])), "expected rows and features, at most"),
        (lambda f: edit(f, lambda t: t.update(dtype="object")), "dtype is 'object'; expected float32"),
        (lambda f: edit(f, lambda t: t["bytes"].pop("y")), "expected the size of each array"),
        (lambda f: edit(f, lambda t: t["checksums"].pop("y")), "it lacks checksums"),
        (lambda f: first(f, "indptr").unlink(), "indptr.npy is missing"),
        (lambda f: first(f, "indices").write_bytes(b""), "indices.npy has 0 bytes; meta.json says"),
        (lambda f: first(f, "y").write_bytes(first(f, "y").read_bytes()[:-1]), "y.npy has"),
        (lambda f: rewrite(f, "y", lambda y: y.__setitem__(0, 3)), "y holds the class numbers 0 to 3; with 3 classes"),
    ],
)
def test_a_damaged_folder_is_refused_when_it_is_opened(tmp_path, damage, message):
    stored(tmp_path / "X.sparse", drawn())
    damage(tmp_path / "X.sparse")
    with pytest.raises(DataError, match=message):
        data.load("sparse", path=tmp_path / "X.sparse")


def entries(table):
    """(holder, key) of every entry of a table, at any depth."""
    for key, value in table.items() if isinstance(table, dict) else enumerate(table):
        yield table, key
        if isinstance(value, dict | list):
            yield from entries(value)


def test_a_description_without_an_entry_or_with_another_thing_in_it_is_refused_or_read(tmp_path):
    stored(tmp_path / "X.sparse", drawn(30))
    path = tmp_path / "X.sparse" / META
    text = path.read_text()
    tried = refused = 0
    for number in range(len(list(entries(json.loads(text))))):
        for change in ("gone", None, -1, "x", [], {}, 1e300):
            table = json.loads(text)
            holder, key = list(entries(table))[number]
            if change == "gone":
                del holder[key]
            else:
                holder[key] = change
            path.write_text(json.dumps(table))
            tried += 1
            try:
                data.load("sparse", path=tmp_path / "X.sparse", whole=True)
            except DataError:
                refused += 1
    assert tried > 100
    assert refused > tried / 2  # not those that change a name, a licence or a hash that nobody asked for


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("indices", lambda a: a.__setitem__(3, 40), r"indices\[3\] is 40, out of range"),
        ("indptr", lambda a: a.__setitem__(1, 10**6), "its row pointers fall, or do not end at"),
        ("indptr", lambda a: a.__setitem__(1, -(2**62)), "is damaged"),
        ("indptr", lambda a: a.__setitem__(-1, 0), "is damaged"),
    ],
)
def test_indices_that_kernels_would_follow_are_checked_when_rows_are_read(tmp_path, name, change, message):
    stored(tmp_path / "X.sparse", drawn())
    rewrite(tmp_path / "X.sparse", name, change)
    kept = data.load("sparse", path=tmp_path / "X.sparse")
    with pytest.raises(DataError, match=message):
        kept.x.read(0, kept.rows)


@pytest.mark.parametrize("name", ["indptr", "indices", "data", "y"])
@pytest.mark.parametrize("chunk", [7, 100, arrays.CHUNK])
def test_a_flipped_bit_is_refused_when_its_part_is_first_read(tmp_path, monkeypatch, name, chunk):
    """A value that stays plausible is noticed by the checksum alone."""
    monkeypatch.setattr(arrays, "CHUNK", chunk)
    stored(tmp_path / "X.sparse", drawn())
    assert data.load("sparse", path=tmp_path / "X.sparse", verify=True).x.read(0, 300).shape == (300, 40)
    content = bytearray(first(tmp_path / "X.sparse", name).read_bytes())
    content[-1] ^= 0x01
    first(tmp_path / "X.sparse", name).write_bytes(bytes(content))
    for options in ({}, {"verify": True}):
        with pytest.raises(DataError, match=rf"{name}.npy does not hold what was written"):
            data.load("sparse", path=tmp_path / "X.sparse", **options).x.read(0, 300)
    if name == "data" and chunk == 7:
        assert data.load("sparse", path=tmp_path / "X.sparse").x.read(0, 100).shape == (100, 40)


@pytest.mark.parametrize("name", ["indptr", "indices", "data"])
def test_a_file_that_is_cut_while_it_is_open_is_refused_and_ends_no_process(tmp_path, monkeypatch, name):
    monkeypatch.setattr(arrays, "CHUNK", 64)
    stored(tmp_path / "X.sparse", drawn())
    rows = data.load("sparse", path=tmp_path / "X.sparse").x
    rows.read(0, 10)
    os.truncate(first(tmp_path / "X.sparse", name), 300)
    with pytest.raises(DataError, match=f"{name}.npy ends at byte .*: another program cut it"):
        rows.read(200, 300)


def test_a_file_of_another_type_is_refused(tmp_path):
    stored(tmp_path / "X.sparse", drawn())
    path = first(tmp_path / "X.sparse", "data")
    np.save(path, np.load(path).astype(np.int32))
    with pytest.raises(DataError, match=r"data.npy holds int32 .*; meta.json says float32"):
        data.load("sparse", path=tmp_path / "X.sparse")


def test_a_file_that_is_no_folder_of_rows_is_refused(tmp_path):
    (tmp_path / "file").write_text("1 1:1")
    for path, message in (("file", "cannot be read as a folder of stored rows"), ("none", "There is no file .*none")):
        with pytest.raises(DataError, match=message):
            data.load("sparse", path=tmp_path / path)


def test_blocks_of_different_widths_make_one_set(tmp_path):
    kept = stored(tmp_path / "X.sparse", blocks([block(3, features=4), block(2, features=7), block(0)]))
    assert kept.x.read(0, 5).shape == (5, 7)
    assert kept.labels.kind == "classes"
    assert kept.y.tolist() == [0, 1, 2, 0, 1]


@pytest.mark.parametrize("path", [None, 3, ["x"]])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(DataError, match=r"sparse: path is .*; expected a path"):
        data.load("sparse", path=path)
