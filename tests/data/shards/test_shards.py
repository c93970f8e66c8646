"""Folders of shards: a set comes back equal, in any order and cut, and what is damaged is refused."""

import dataclasses
import json
import os
import shutil

import numpy as np
import pytest
import scipy.sparse as sp

from tests.support.small_sets import labelled, same, targets
from tests.support.stored_sets import block, blocks, drawn, stored, whole
from workbench import data
from workbench.data import DataError
from workbench.data.shards import manifest
from workbench.data.shards.reading import ShardRows, Shards


def edit(folder, change):
    """Write the manifest anew after `change(table)`."""
    path = folder / manifest.NAME
    table = json.loads(path.read_text())
    change(table)
    path.write_text(json.dumps(table))


@pytest.mark.parametrize("shard_bytes", [1024, 3000, 10**9])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_set_comes_back_equal(tmp_path, shard_bytes, dtype):
    made = drawn(groups=np.arange(300) // 7, dtype=dtype)
    stored(tmp_path / "X.sparse", made, shard_bytes=shard_bytes)
    again = whole(tmp_path / "X.sparse")
    assert same(again, made)
    assert again.x.dtype == dtype
    assert np.array_equal(again.groups, made.groups)
    for name in ("name", "labels", "source", "licence", "facts"):
        assert getattr(again, name) == getattr(made, name)
    sizes = [sum(file.stat().st_size for file in shard.glob("*.npy")) for shard in (tmp_path / "X.sparse").glob("0*")]
    assert (len(sizes) > 5) == (shard_bytes < 10**5)
    assert max(sizes) < shard_bytes + 5 * 128 + 300  # headers of files, and a row of doubles


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


def test_values_that_are_all_one_are_not_stored_and_indices_are_narrow(tmp_path):
    ones = drawn(values="ones")
    stored(tmp_path / "X.sparse", ones)
    assert not list((tmp_path / "X.sparse").rglob("data.npy"))
    assert same(whole(tmp_path / "X.sparse"), ones)
    table = json.loads((tmp_path / "X.sparse" / manifest.NAME).read_text())
    assert table["shards"][0]["binsparse"]["data_types"] == {
        "pointers_to_1": "int64", "indices_1": "uint8", "values": "iso[float32]"
    }  # fmt: skip
    for features, kind in ((256, "uint8"), (257, "uint16"), (65_537, "int32")):
        x = data.load("uniform", rows=2, features=features, density=1.0, cache=False)
        stored(tmp_path / kind, x)
        assert np.load(tmp_path / kind / "00000" / "indices.npy").dtype == kind
        assert same(whole(tmp_path / kind), x)


def test_shuffled_rows_have_an_order_of_the_seed_alone(tmp_path):
    made = drawn()
    orders = {}
    for name, seed, shard_bytes in (("a", 0, 1024), ("b", 0, 9000), ("c", 1, 1024)):
        stored(tmp_path / name, made, seed, shard_bytes)
        orders[name] = whole(tmp_path / name)
    assert same(orders["a"], orders["b"])
    assert not same(orders["a"], orders["c"])
    for order in orders.values():
        rows = {tuple(row) for row in np.column_stack([order.x.toarray(), order.y])}
        assert rows == {tuple(row) for row in np.column_stack([made.x.toarray(), made.y])}
    hashes = {json.loads((tmp_path / name / manifest.NAME).read_text())["origin_sha256"] for name in orders}
    stored(tmp_path / "plain", made)
    assert hashes == {json.loads((tmp_path / "plain" / manifest.NAME).read_text())["origin_sha256"]}


def test_every_place_is_as_likely_for_a_row(tmp_path):
    made = data.Dataset(
        "ranks", data.load("uniform", rows=64, features=4, density=0.5, cache=False).x, np.arange(64.0),
        data.Labels("numbers", span=(0.0, 63.0)), "", "",
    )  # fmt: skip
    places = np.array([stored(tmp_path / str(seed), made, seed, 10**6).y for seed in range(40)])
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
    stored(tmp_path / "Y.sparse", kept, shuffle, 9000)
    assert same(whole(tmp_path / "Y.sparse"), made) == (shuffle is None)


def first(folder, name):
    return folder / "00000" / f"{name}.npy"


def rewrite(folder, name, change, with_hash=True):
    """Write an array of the first shard anew, of the same size; with its hash, where another check is to notice it."""
    array = np.load(first(folder, name))
    change(array)
    np.save(first(folder, name), array)
    if with_hash:
        sha256 = manifest.sha256_of(first(folder, name))
        edit(folder, lambda table: table["shards"][0]["files"][name].update(sha256=sha256))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / manifest.NAME).unlink(), "has no manifest.json: it holds no shards, or its conversion did not"),
        (lambda f: (f / manifest.NAME).write_text("{"), "manifest.json cannot be read as a folder of shards"),
        (lambda f: (f / manifest.NAME).write_text("[]"), "is no manifest of shards"),
        (lambda f: (f / manifest.NAME).write_text('{"x": NaN}'), "NaN is no number of JSON"),
        (lambda f: edit(f, lambda t: t.update(version=2)), "is of version 2; up to 1 is read. Update the workbench"),
        (lambda f: edit(f, lambda t: t.pop("labels")), "is damaged: labels is missing; expected an object"),
        (lambda f: edit(f, lambda t: t.update(shape=[7, 40])), "its shards have 300 rows and .* not 7"),
        (lambda f: edit(f, lambda t: t.update(shape=[300, -1])), r"shape is \[300, -1\]; expected rows and features"),
        (lambda f: edit(f, lambda t: t.update(dtype="object")), "dtype is 'object'; expected one of float32"),
        (lambda f: edit(f, lambda t: t["shards"].pop(1)), "shard 1 starts at row"),
        (lambda f: edit(f, lambda t: t["shards"][0]["files"].pop("y")), "lacks a file"),
        (lambda f: shutil.rmtree(f / "00001"), "00001/indptr.npy is part of .* and not there"),
        (lambda f: first(f, "indices").write_bytes(b""), "indices.npy has 0 bytes; the manifest says"),
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
    """(holder, key) of every entry of a manifest, at any depth."""
    for key, value in table.items() if isinstance(table, dict) else enumerate(table):
        yield table, key
        if isinstance(value, dict | list):
            yield from entries(value)


def test_a_manifest_without_an_entry_or_with_another_thing_in_it_is_refused_or_read(tmp_path):
    stored(tmp_path / "X.sparse", drawn(30))
    path = tmp_path / "X.sparse" / manifest.NAME
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
    assert tried > 300
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


def test_verifying_finds_what_sizes_do_not_tell(tmp_path):
    stored(tmp_path / "X.sparse", drawn())
    assert data.load("sparse", path=tmp_path / "X.sparse", verify=True).rows == 300
    rewrite(tmp_path / "X.sparse", "data", lambda values: values.__setitem__(0, 7), with_hash=False)
    assert data.load("sparse", path=tmp_path / "X.sparse").rows == 300
    with pytest.raises(DataError, match=r"data.npy does not hold what was written: its SHA-256 is another"):
        data.load("sparse", path=tmp_path / "X.sparse", verify=True)


@pytest.mark.parametrize("name", ["indptr", "indices", "data", "y"])
def test_a_file_that_is_cut_while_it_is_open_is_refused_and_ends_no_process(tmp_path, name):
    stored(tmp_path / "X.sparse", drawn(), shard_bytes=10**9)
    shards = Shards(tmp_path / "X.sparse")
    rows = ShardRows(shards, 0, 300, np.dtype(np.float32))
    rows.read(0, 10), shards.column("y", 0, 10)
    os.truncate(tmp_path / "X.sparse" / "00000" / f"{name}.npy", 200)
    with pytest.raises(DataError, match=f"{name}.npy ends before its element .*another program cut it"):
        rows.read(200, 300), shards.column("y", 200, 300)


def test_a_file_of_another_type_is_refused(tmp_path):
    stored(tmp_path / "X.sparse", drawn())
    path = first(tmp_path / "X.sparse", "data")
    np.save(path, np.load(path).astype(np.int32))
    with pytest.raises(DataError, match=r"data.npy holds int32 .*; the manifest says float32"):
        data.load("sparse", path=tmp_path / "X.sparse")


def test_a_file_that_is_no_folder_of_shards_is_refused(tmp_path):
    (tmp_path / "file").write_text("1 1:1")
    for path, message in (("file", "cannot be read as a folder of shards"), ("none", "There is no file .*none")):
        with pytest.raises(DataError, match=message):
            data.load("sparse", path=tmp_path / path)


def test_blocks_of_different_widths_make_one_set(tmp_path):
    kept = stored(tmp_path / "X.sparse", blocks([block(3, features=4), block(2, features=7), block(0)]))
    assert kept.x.read(0, 5).shape == (5, 7)
    assert kept.labels.kind == "classes"
    assert kept.y.tolist() == [0, 1, 2, 0, 1]


@pytest.mark.parametrize("name", ["data", "indices", "indptr", "y"])
def test_a_flipped_bit_is_refused_when_the_file_is_first_read(tmp_path, name):
    """A value that stays plausible is noticed by the hash alone."""
    stored(tmp_path / "X.sparse", drawn())
    file = next((tmp_path / "X.sparse").glob(f"*/{name}.npy"))
    content = bytearray(file.read_bytes())
    content[-1] ^= 0x01
    file.write_bytes(bytes(content))
    with pytest.raises(DataError, match=rf"{name}.npy does not hold what was written"):
        data.load("sparse", path=tmp_path / "X.sparse").x.read(0, 300)


def test_a_width_beyond_all_memory_is_refused(tmp_path):
    stored(tmp_path / "X.sparse", drawn())
    edit(tmp_path / "X.sparse", lambda table: table.update(shape=[table["shape"][0], 10**18]))
    with pytest.raises(DataError, match=r"shape is .*; expected rows and features, at most 2\*\*47"):
        data.load("sparse", path=tmp_path / "X.sparse")


@pytest.mark.parametrize("path", [None, 3, ["x"]])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(DataError, match=r"sparse: path is .*; expected a path"):
        data.load("sparse", path=path)
