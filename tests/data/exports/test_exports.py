"""Files for other programs: what they hold is what the set holds, read back by whoever reads such files."""

import json
import sys

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from tests.support.small_sets import labelled, same, targets
from tests.support.stored_sets import drawn, stored
from workbench import data, formats
from workbench.data import DataError


@pytest.fixture(params=["held", "stored"])
def made(request, tmp_path):
    held = drawn(groups=np.arange(300) // 3)
    return held if request.param == "held" else stored(tmp_path / "X.sparse", held)


@pytest.fixture
def whole():
    return drawn(groups=np.arange(300) // 3)


@pytest.mark.parametrize(
    ("kind", "name", "settings"),
    [("svmlight", "rows.svm", {"zero_based": True, "features": 40}), ("npz", "x.npz", {"labels": "x.npz.labels.npy"})],
)
def test_svmlight_text_and_archives_of_scipy_read_back_equal(made, whole, tmp_path, monkeypatch, kind, name, settings):
    monkeypatch.chdir(tmp_path)
    data.export(made, name, to=kind)
    again = data.load(kind, path=name, cache=False, **settings)
    assert same(again, data.Dataset("", whole.x, whole.y, again.labels, "", ""))
    assert again.classes == whole.classes


@pytest.mark.parametrize(
    ("one", "expected"), [(labelled(), [0, 0, 0, 1, 1, 2]), (targets((0.1, 2, 3, 4, 5, 1e-9)), [0.1, 2, 3, 4, 5, 1e-9])]
)
def test_labels_of_svmlight_text_are_numbers(one, expected, tmp_path):
    data.export(one, tmp_path / "rows.svm", to="svmlight")
    labels = [float(line.split()[0]) for line in (tmp_path / "rows.svm").read_text().splitlines()]
    assert np.float32(labels).tolist() == np.float32(expected).tolist()


def test_several_classes_a_row_have_commas_and_several_numbers_are_refused(tmp_path):
    x = labelled().x
    several = data.Dataset("s", x, np.eye(6, 3, dtype=np.uint8), data.Labels("multilabel", ("a", "b", "c")), "", "")
    data.export(several, tmp_path / "rows.svm", to="svmlight")
    labels = [line.split(" ")[0] for line in (tmp_path / "rows.svm").read_text().splitlines()]
    assert labels == ["0", "1", "2", "", "", ""]
    numbers = data.Dataset("n", x, np.eye(6, 3), data.Labels("numbers"), "", "")
    with pytest.raises(DataError, match="has 3 numbers a row, and a line of svmlight text one label"):
        data.export(numbers, tmp_path / "numbers.svm", to="svmlight")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.svm"]


def test_matrix_market_is_read_by_scipy(made, whole, tmp_path):
    data.export(made, tmp_path / "x.mtx", to="matrix_market")
    assert (sp.csr_array(scipy.io.mmread(tmp_path / "x.mtx", spmatrix=False)).astype(np.float32) != whole.x).nnz == 0
    assert np.load(tmp_path / "x.mtx.labels.npy").tolist() == [whole.classes[label] for label in whole.y]


def test_parquet_has_a_row_for_each(made, whole, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    data.export(made, tmp_path / "x.parquet", to="parquet")
    table = parquet.read_table(tmp_path / "x.parquet")
    assert table.column_names == ["indices", "values", "label", "group"]
    assert table["indices"].to_pylist() == [part.tolist() for part in np.split(whole.x.indices, whole.x.indptr[1:-1])]
    assert table["values"].combine_chunks().flatten().to_numpy().tolist() == whole.x.data.tolist()
    assert table["label"].to_pylist() == [whole.classes[label] for label in whole.y]
    assert json.loads(table.schema.metadata[b"sparse-workbench"])["features"] == 40


def test_anndata_reads_it(made, whole, tmp_path):
    anndata = pytest.importorskip("anndata")
    data.export(made, tmp_path / "x.h5ad", to="anndata")
    again = anndata.read_h5ad(tmp_path / "x.h5ad")
    assert (sp.csr_array(again.X) != whole.x).nnz == 0
    assert again.obs["label"].tolist() == [whole.classes[label] for label in whole.y]
    assert again.obs["group"].tolist() == whole.groups.tolist()


def test_a_binsparse_file_has_the_descriptor_and_the_arrays(made, whole, tmp_path):
    h5py = pytest.importorskip("h5py")
    data.export(made, tmp_path / "x.h5", to="binsparse")
    with h5py.File(tmp_path / "x.h5") as file:
        about = json.loads(file.attrs["binsparse"])["binsparse"]
        parts = [file[name][()] for name in ("values", "indices_1", "pointers_to_1")]
        labels = [label.decode() for label in file["labels"][()]]
    assert (about["format"], about["version"], about["shape"]) == ("CSR", "0.1", [300, 40])
    assert about["number_of_stored_values"] == whole.x.nnz
    assert list(about["data_types"].values()) == [str(part.dtype) for part in parts[::-1]]
    assert (sp.csr_array(tuple(parts), shape=(300, 40)) != whole.x).nnz == 0
    assert labels == [whole.classes[label] for label in whole.y]


def test_a_folder_of_shards_is_exported_by_its_name(tmp_path):
    kept = stored(tmp_path / "X.sparse", drawn())
    data.export(tmp_path / "X.sparse", tmp_path / "a.svm", to="svmlight")
    data.export(kept, tmp_path / "b.svm", to="svmlight")
    assert (tmp_path / "a.svm").read_bytes() == (tmp_path / "b.svm").read_bytes()


def test_what_cannot_be_written_is_refused(tmp_path, monkeypatch):
    with pytest.raises(DataError, match=r"Unknown export format .*csv.*svmlight"):
        data.export(drawn(), tmp_path / "x", to="csv")
    (tmp_path / "there").write_text("")
    with pytest.raises(DataError, match=r"There is already .*there; remove it"):
        data.export(drawn(), tmp_path / "there", to="svmlight")
    with pytest.raises(DataError, match="cannot be written: No such file or directory"):
        data.export(drawn(), tmp_path / "none" / "x", to="svmlight")
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(
        DataError, match=r"The export to binsparse needs h5py.*: pip install 'sparse-workbench\[exchange\]'"
    ):
        data.export(drawn(), tmp_path / "x", to="binsparse")


@pytest.mark.parametrize(("to", "package"), [("anndata", "anndata"), ("binsparse", "h5py")])
def test_what_was_exported_is_read_again_whole_and_in_blocks(to, package, made, whole, tmp_path, monkeypatch):
    pytest.importorskip(package)
    from workbench.data.sources import anndata, binsparse

    for source in (anndata, binsparse):
        monkeypatch.setattr(source, "ROWS_OF_BLOCK", 64)
    data.export(made, tmp_path / "x", to=to)
    again = data.load(to, path=tmp_path / "x", cache=False)
    assert same(again, data.Dataset("", whole.x, whole.y, again.labels, "", ""))
    assert again.classes == whole.classes
    stored(tmp_path / "Y.sparse", to, path=tmp_path / "x")
    assert same(data.load("sparse", path=tmp_path / "Y.sparse", whole=True), again)


@pytest.mark.parametrize(("to", "package"), [("anndata", "anndata"), ("binsparse", "h5py")])
def test_faults_of_files_of_other_programs_are_told(to, package, tmp_path):
    pytest.importorskip(package)
    data.export(drawn(), tmp_path / "x", to=to)
    for path, parameters, message in (
        (tmp_path / "x", {"column": "colour"}, r"has no labels in 'colour'; there is: .*label"),
        (tmp_path / "none", {}, "There is no file .*none"),
    ):
        with pytest.raises(DataError, match=message):
            data.load(to, path=path, cache=False, **parameters)
    (tmp_path / "text").write_text("1 1:1")
    with pytest.raises(DataError, match="text cannot be read as"):
        data.load(to, path=tmp_path / "text", cache=False)


def test_a_binsparse_file_of_another_form_or_with_arrays_that_do_not_fit_is_refused(tmp_path):
    h5py = pytest.importorskip("h5py")

    def refused(name, change, message):
        data.export(drawn(), tmp_path / name, to="binsparse")
        with h5py.File(tmp_path / name, "a") as file:
            change(file)
        with pytest.raises((DataError, formats.FormatError), match=message):
            data.load("binsparse", path=tmp_path / name, cache=False)

    def described(file, **change):
        about = json.loads(file.attrs["binsparse"])["binsparse"] | change
        file.attrs["binsparse"] = json.dumps({"binsparse": about})

    refused("a", lambda file: described(file, format="COO"), "holds COO; CSR is read")
    refused("b", lambda file: described(file, shape=[299, 40]), "its arrays do not fit the shape 299 x 40")
    refused("c", lambda file: described(file, shape=[300, 4]), "out of range")
    refused("d", lambda file: file.attrs.pop("binsparse"), "has no binsparse descriptor")
    refused("e", lambda file: file["pointers_to_1"].__setitem__(5, 10**6), "indptr")
