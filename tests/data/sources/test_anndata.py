"""AnnData objects, their selections, .h5ad files and .zarr folders: X or a layer, and labels of observations."""

import sys
import types

import numpy as np
import pytest
import scipy.sparse as sp

import workbench as wb
from workbench import data
from workbench.data import DataError
from workbench.data.errors import MissingLabelsError

pytestmark = pytest.mark.usefixtures("own_cache")
VALUES = np.array([[0, 3, 0], [1, 0, 0], [0, 0, 2], [7, 9, 0]])
LABELS = np.array([0, 1, 1, 0])


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array, sp.csr_matrix, np.ndarray])
def test_x_of_a_selection_is_a_matrix_although_its_type_is_of_anndata(form):
    kind = type("View", (form,), {"__module__": "anndata._core.views"})
    x = VALUES.astype(np.int16)
    view = x.view(kind) if form is np.ndarray else kind(x)
    for call in (wb.load, lambda x, y: wb.profile(x), lambda *xy: wb.SparseClassifier().fit(*xy).predict(xy[0])):
        call(view, LABELS)
    np.testing.assert_array_equal(wb.load(view, LABELS).x.toarray(), VALUES)


def test_a_missing_package_is_named_with_what_installs_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "anndata", types.ModuleType("anndata"))
    monkeypatch.setitem(sys.modules, "zarr", None)
    (tmp_path / "x.zarr" / "X").mkdir(parents=True)
    (tmp_path / "x.zarr" / ".zgroup").write_text("{}")
    assert data.guess(tmp_path / "x.zarr")[0] == "anndata"
    with pytest.raises(
        DataError, match=r"needs zarr, which is not installed: pip install 'sparse-workbench\[exchange\]'"
    ):
        data.load("anndata", path=tmp_path / "x.zarr")


@pytest.fixture
def adata():
    anndata, pandas = pytest.importorskip("anndata"), pytest.importorskip("pandas")
    of_rows = {"label": pandas.Categorical(["a", "b", "b", "a"]), "dose": pandas.Categorical([2, 10, 10, 2])}
    observed = pandas.DataFrame(of_rows, index=list("0123"))
    made = anndata.AnnData(X=sp.csr_array(VALUES.astype(np.float32)), obs=observed)
    made.layers["counts"] = sp.csr_array(VALUES.astype(np.uint16) * 2)
    made.obsm["tags"] = sp.csr_array(np.eye(2)[LABELS])
    return made


@pytest.fixture(params=["object", "view", "backed", "h5ad", "zarr"])
def source(request, adata, tmp_path):
    """What `wb.load` takes, one way and the other."""
    if request.param in ("backed", "h5ad"):
        adata.write_h5ad(tmp_path / "x.h5ad")
    if request.param == "backed":
        read = sys.modules["anndata"].read_h5ad(tmp_path / "x.h5ad", backed="r")
        yield read
        read.file.close()
        return
    if request.param == "zarr":
        pytest.importorskip("zarr")
        adata.write_zarr(tmp_path / "x.zarr")
    yield {"object": adata, "view": adata[:]}.get(request.param, str(tmp_path / f"x.{request.param}"))


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
def test_every_door_reads_x_layers_and_labels_alike(source):
    made = wb.load(source, label="label")
    assert (made.x.toarray().tolist(), made.classes, made.y.tolist()) == (VALUES.tolist(), ("a", "b"), LABELS.tolist())
    counts = wb.load(source, label="dose", layer="counts")
    assert (counts.x.toarray().tolist(), counts.classes) == ((2 * VALUES).tolist(), ("2", "10"))
    assert wb.load(source, label="tags").y.tolist() == np.eye(2)[LABELS].tolist()
    with pytest.raises(DataError, match="has no layer 'count'; there is: counts"):
        wb.load(source, label="label", layer="count")
    with pytest.raises(DataError, match="has no labels in 'lable'; there is: label, dose, tags"):
        wb.load(source, label="lable")


def test_missing_labels_and_a_missing_matrix_are_refused(adata, tmp_path):
    adata.obs["label"] = adata.obs["label"].where(np.arange(4) != 2)
    with pytest.raises(DataError, match="adata, row 2: there is no label in 'label'"):
        wb.load(adata, label="label")
    adata.X = None
    adata.write_h5ad(tmp_path / "x.h5ad")
    with pytest.raises(DataError, match=r'has no X; .* Layers: counts\.\nType layer="NAME"'):
        wb.load(str(tmp_path / "x.h5ad"), label="dose")
    assert wb.load(str(tmp_path / "x.h5ad"), label="dose", layer="counts").rows == 4
    with pytest.raises(MissingLabelsError):
        data.load("anndata", path=tmp_path / "x.h5ad", layer="counts", column="none")


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
def test_a_folder_of_zarr_that_changed_is_read_anew(adata, tmp_path):
    pytest.importorskip("zarr")
    for factor in (1, 2):
        adata.X = sp.csr_array(VALUES * float(factor))
        adata.write_zarr(tmp_path / "x.zarr")
        assert data.load("anndata", path=tmp_path / "x.zarr").x.toarray().tolist() == (VALUES * factor).tolist()
