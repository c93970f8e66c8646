"""What is exported is read back as it was: matrix, labels, classes and groups, by every kind that is registered."""

import dataclasses

import numpy as np
import pytest

from tests.support.small_sets import labelled, targets
from tests.support.stored_sets import drawn
from workbench import data
from workbench.data import exports

PARAMETERS = {
    "svmlight": lambda path, made: {"zero_based": True, "features": made.features, "kind": made.kind},
    "npz": lambda path, made: {"labels": f"{path}.labels.npy"},
    "matrix_market": lambda path, made: {"labels": f"{path}.labels.npy"},
    "anndata": lambda path, made: {"column": "label" if made.y.ndim == 1 else "labels"},
}
"""Parameters by which a kind is read again, where the file cannot say them."""
GROUPS_HELD = ("parquet",)
MULTILABEL = dataclasses.replace(
    labelled(), y=np.eye(6, 3, dtype=np.uint8), labels=data.Labels("multilabel", ("a", "b", "c"))
)
SETS = {
    "classes": labelled(),
    "classes that are not in order": dataclasses.replace(labelled(), labels=data.Labels("classes", ("b", "c", "a"))),
    "two classes": dataclasses.replace(
        labelled((0, 1, 1, 0)), labels=data.Labels("classes", ("no", "yes"), positive="yes")
    ),
    "numbers": targets((0.1, 2, 3, 4, 5, 1e-9)),
    "several classes": MULTILABEL,
    "groups": drawn(groups=np.arange(300) // 3),
    "a first and a last column without entries": data.keep_rows(labelled(features=9), 6, seed=0),
}

pytestmark = pytest.mark.usefixtures("own_cache")


def labels_of(dataset, has_names):
    """Labels by the names of their classes, or by their numbers in a file without names."""
    return (
        [dataset.classes[label] for label in dataset.y]
        if has_names and dataset.kind == "classes"
        else dataset.y.tolist()
    )


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("kind", exports.names())
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
def test_what_was_exported_is_read_as_it_was(kind, name, tmp_path):
    entry, made = exports.get(kind), SETS[name]
    if entry.package:
        pytest.importorskip(entry.package)
    path = tmp_path / "x"
    data.export(made, path, to=kind)
    again = data.load(kind, path=path, **PARAMETERS.get(kind, lambda path, made: {})(path, made))
    assert again.x.shape == made.x.shape
    assert (again.x != made.x).nnz == 0
    assert again.kind == made.kind
    before, after = (labels_of(one, has_names=kind != "svmlight") for one in (made, again))
    assert after == pytest.approx(before, rel=1e-6) if made.kind == "numbers" else after == before
    if kind in GROUPS_HELD:
        assert (again.classes, again.groups is None) == (made.classes, made.groups is None)
        assert again.groups is None or again.groups.tolist() == made.groups.tolist()


@pytest.mark.parametrize("name", SETS)
def test_parquet_that_was_exported_is_told_from_other_parquet_and_read_in_blocks(name, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    data.export(SETS[name], tmp_path / "x.parquet", to="parquet")
    assert data.guess(tmp_path / "x.parquet")[0] == "parquet"
    data.convert("parquet", tmp_path / "X.sparse", shuffle=None, path=tmp_path / "x.parquet")
    stored = data.load("sparse", path=tmp_path / "X.sparse", whole=True)
    assert stored.features == SETS[name].features
    assert (stored.x != SETS[name].x).nnz == 0
    table = parquet.read_table(tmp_path / "x.parquet").replace_schema_metadata(None)
    parquet.write_table(table, tmp_path / "other.parquet")
    assert data.guess(tmp_path / "other.parquet")[0] == "table"
    with pytest.raises(data.DataError, match=r"a Parquet file that was not exported here.*\nType dataset=.table."):
        data.load("parquet", path=tmp_path / "other.parquet")


def test_parts_of_exported_parquet_are_one_set(tmp_path):
    pytest.importorskip("pyarrow")
    made = drawn()
    (tmp_path / "parts").mkdir()
    for number, start in enumerate(range(0, 300, 100)):
        part = data.take(made, np.arange(start, start + 100))
        data.export(part, tmp_path / "parts" / f"{number}.parquet", to="parquet")
    again = data.load("parquet", path=tmp_path / "parts")
    assert (again.x != made.x).nnz == 0
    assert (again.y.tolist(), again.classes) == (made.y.tolist(), made.classes)


def test_exported_parquet_that_is_cut_or_changed_is_refused(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "x.parquet"
    data.export(labelled(), path, to="parquet")
    whole, table = path.read_bytes(), parquet.read_table(path)
    for size in (4, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(data.DataError, match=r"x\.parquet"):
            data.load("parquet", path=path)
    without = table.set_column(0, "indices", [[[0]] * 6])
    missing = table.set_column(2, "label", [["a", None, "a", "b", "b", "c"]])
    for wrong in (without, missing):
        parquet.write_table(wrong.replace_schema_metadata(table.schema.metadata), path)
        with pytest.raises(data.DataError, match=r"x\.parquet is damaged: rows lack indices, values or labels"):
            data.load("parquet", path=path)
    outside = table.set_column(0, "indices", [[[0, 99]] * 6])
    parquet.write_table(outside.replace_schema_metadata(table.schema.metadata), path)
    with pytest.raises(data.DataError, match=r"x.parquet cannot be read .*99"):
        data.load("parquet", path=path)
