"""Every contract can be broken and is then reported; what is right passes; nothing invalid is followed."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from typer.testing import CliRunner

from tests.support.invalid_arrays import FAULTS, SPARSE, broken, sound
from workbench.bridges import FRAMEWORKS, ContractError, Parts, check, require
from workbench.bridges.validation_rules import CONTRACTS, STRUCTURE
from workbench.command.cli import app
from workbench.formats import RowSparse


def csr(**arrays):
    """Two rows of 4 columns, with some of its arrays in the place of the right ones."""
    right = {"data": np.float32([1, 2, 3]), "indices": np.int32([0, 2, 3]), "indptr": np.int32([0, 2, 3])}
    return Parts("csr", (2, 4), right | arrays)


def coo(row, col, data=(1, 2, 3)):
    return Parts("coo", (2, 4), {"data": np.float32(data), "row": np.int64(row), "col": np.int64(col)})


def gradient(indices):
    return Parts("row_sparse", (9, 2), {"values": np.ones((len(indices), 2), np.float32), "indices": np.int64(indices)})


NAN = np.float32([1, np.nan, 3])


class Padded:
    """A matrix of JAX with two entries and three of padding, as its arrays are there."""

    data = np.float32([1, 2, 0, 0, 0])
    indices = np.int32([[0, 1], [1, 2], [2, 4], [2, 4], [2, 4]])
    shape = (2, 4)
    nse, n_batch, n_dense = 5, 0, 0


Padded.__module__ = "jax.experimental.sparse.bcoo"


class Trained(scipy.sparse.csr_array):
    """A sparse matrix that says, as a tensor does, that its values are trained."""

    requires_grad = True


FRAME = pd.DataFrame.sparse.from_spmatrix(scipy.sparse.eye_array(4, dtype=np.float32))
ONE_EACH = {
    "sparse": (np.ones((2, 4), np.float32), {"sparse": True}),
    "format": (Parts("ell", (2, 4), {"data": np.float32([1])}), {}),
    "shape": (np.ones((2, 4, 1), np.float32), {}),
    "width": (csr(), {"width": 5}),
    "index type": (csr(indices=np.float64([0, 2, 3])), {}),
    "index widths": (csr(indptr=np.int64([0, 2, 3])), {}),
    "index dtype": (csr(), {"index_dtype": np.int64}),
    "narrow indices": (csr(indices=np.int64([0, 2, 3]), indptr=np.int64([0, 2, 3])), {}),
    "index limit": (scipy.sparse.csr_array((1, 2**32), dtype=np.float32), {}),
    "lengths": (csr(data=np.float32([1, 2])), {}),
    "pointers": (csr(indptr=np.int32([0, 9, 3])), {}),
    "range": (csr(indices=np.int32([0, 2, 4])), {}),
    "numbers": (csr(data=np.complex64([1, 2, 3])), {}),
    "floats": (csr(data=np.int32([1, 2, 3])), {}),
    "integers": (csr(data=np.int32([1, 2, 3])), {}),
    "float32": (csr(data=np.float64([1, 2, 3])), {}),
    "dtype": (csr(), {"dtype": np.float64}),
    "finite": (csr(data=NAN), {}),
    "row order": (coo([1, 0, 0], [0, 1, 2]), {}),
    "column order": (csr(indices=np.int32([2, 0, 3])), {}),
    "duplicates": (csr(indices=np.int32([2, 2, 3])), {}),
    "unique rows": (gradient([3, 3]), {}),
    "gradient of values": (Trained(np.eye(4, dtype=np.float32)), {}),
    "padding": (Padded(), {}),
    "zeros are missing": (csr(), {}),
    "stored zeros": (csr(data=np.float32([1, 0, 3])), {}),
    "frame": (FRAME, {}),
    "sparse array": (scipy.sparse.csr_array(np.eye(4, dtype=np.float32)), {}),
    "rows": (np.ones((0, 4), np.float32), {}),
    "label count": (csr(), {"y": [1]}),
    "label values": (csr(), {"y": [0, 7], "labels": "signs"}),
}


ONLY_OURS = ("unsorted", "indices narrow")
"""What a `RowSparse` may not be, and a gradient of another framework may."""
INVALID = [(format, fault) for format in SPARSE for fault in FAULTS[format] if fault not in ONLY_OURS]


def targets_of_malformed(case):
    """Every error in every format for the first framework, and each once in any format for each of the others."""
    targets = {(case["framework"], case["fault"]), (case["framework"], case["format"])}
    return targets | {(case["format"], case["fault"])} if case["framework"] == next(iter(FRAMEWORKS)) else targets


def names(breaches):
    return {breach.contract for breach in breaches}


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract.name)
def test_a_broken_contract_is_told_as_the_table_says(contract, framework):
    x, asked = ONE_EACH[contract.name]
    found = {breach.contract: breach for breach in check(x, for_=framework, **asked)}
    severity = contract.severity(framework)
    assert (found[contract.name].severity if contract.name in found else None) == severity
    if severity:
        text = str(found[contract.name])
        assert text.startswith(f"{severity}, data -> batch, {contract.name}: ")
        assert "Expected: " in text
        assert contract.effects.get(framework, "") in text


def test_every_row_of_the_table_has_its_breach():
    assert set(ONE_EACH) == {contract.name for contract in CONTRACTS}


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_what_is_right_has_no_breach(framework):
    labels = "signs" if framework == "vw" else "classes"
    found = check(csr(), [1, 1], for_=framework, width=4, dtype=np.float32, labels=labels)
    assert names(found) == ({"zeros are missing"} if framework == "xgboost" else set())


@pytest.mark.parametrize("kind", [scipy.sparse.csr_matrix, scipy.sparse.csr_array])
@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
def test_every_scipy_container_passes_for_scikit_learn(kind, format):
    x = kind(np.float32([[1, 0, 2], [0, 0, 3], [4, 5, 0]])).asformat(format)
    found = check(x, for_="sklearn", width=3)
    assert names(found) <= {"narrow indices"}


@pytest.mark.parametrize(("framework", "format"), [("keras", "csc"), ("tensorflow", "csc"), ("pytorch", "bsr")])
def test_formats_that_a_framework_cannot_take_are_errors(framework, format):
    x = scipy.sparse.csr_array(np.eye(2, dtype=np.float32)).asformat(format)
    assert [breach.severity for breach in check(x, for_=framework) if breach.contract == "format"] == ["error"]


@pytest.mark.parametrize("format", ["csr", "coo", "dia", "dok", "lil", "bsr"])
def test_formats_that_keras_takes_pass(format):
    x = scipy.sparse.csr_array(np.eye(2, dtype=np.float32))
    x = x.tobsr(blocksize=(1, 2)) if format == "bsr" else x.asformat(format)
    assert "format" not in names(check(x, for_="keras"))
    assert "format" in names(check(scipy.sparse.eye_array(4, dtype=np.float32).tobsr((2, 2)), for_="keras"))


@pytest.mark.parametrize("indptr", [[0, 2**30, 3], [0, 2, 2**30], [-5, 2, 3], [0, 2], [], [0, 3, 2]])
def test_wrong_row_starts_are_told_and_not_followed(indptr):
    x = csr(indptr=np.array(indptr, np.int32))
    assert "pointers" in names(check(x, for_="pytorch"))
    assert "duplicates" not in names(check(x, for_="sklearn"))


def test_values_without_indices_are_told():
    assert "lengths" in names(check(csr(indices=np.int32([0, 2]), indptr=np.int32([0, 1, 2])), for_="pytorch"))


@pytest.mark.parametrize("indices", [[0, 2, 4], [-1, 2, 3], [2**31 - 1, 0, 0]])
def test_columns_out_of_range_are_told(indices):
    found = check(csr(indices=np.int32(indices)), for_="pytorch")
    assert [breach.contract for breach in found] == ["range"]
    assert "reads" not in found[0].came
    assert "outside" in found[0].effect


@pytest.mark.parametrize("first", [0, 1, 3])
def test_duplicates_are_counted_where_columns_are_unsorted(first):
    x = csr(data=np.ones(5, np.float32), indices=np.int32([first, 2, first, 2, first]), indptr=np.int32([0, 4, 5]))
    came = next(breach.came for breach in check(x, for_="sklearn") if breach.contract == "duplicates")
    assert came.startswith("2 entries stand where another does")
    assert f"row 0, column {min(first, 2)}" in came


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
def test_duplicates_are_those_that_a_count_finds(seed, format):
    generator = np.random.default_rng(seed)
    row, col = generator.integers(0, 6, 12), generator.integers(0, 7, 12)
    x = scipy.sparse.coo_array((np.ones(12, np.float32), (row, col)), shape=(6, 7))
    if format != "coo":
        indices, starts = (col, row) if format == "csr" else (row, col)
        order = np.argsort(starts, kind="stable")
        indptr = np.searchsorted(starts[order], np.arange((6 if format == "csr" else 7) + 1))
        x = Parts(format, (6, 7), {"data": x.data, "indices": indices[order], "indptr": indptr})
    repeats = 12 - len(set(zip(row.tolist(), col.tolist(), strict=True)))
    results = [breach.came for breach in check(x, for_="sklearn") if breach.contract == "duplicates"]
    assert [came.split()[0] for came in results] == [str(repeats)] * bool(repeats)
    if repeats:
        place = tuple(int(word.strip(",")) for word in results[0].split() if word.strip(",").isdigit())[1:]
        assert sum(pair == place for pair in zip(row.tolist(), col.tolist(), strict=True)) > 1


def test_a_gradient_that_became_dense_is_told():
    found = check(np.ones((9, 2), np.float32), for_="keras", boundary="gradient -> optimizer", sparse=True, width=2)
    assert names(found) == {"sparse"}
    assert found[0].boundary == "gradient -> optimizer"


def test_a_row_sparse_gradient_of_the_model_passes():
    found = check(RowSparse(np.ones((2, 3), np.float32), [1, 4], (9, 3)), for_="keras", sparse=True, width=9)
    assert not found


@pytest.mark.parametrize(
    ("y", "labels", "classes"),
    [([0, 1], "classes", 1), ([0, -1], "classes", None), ([0.5, 1], "classes", None), (["a", "b"], "classes", None)],
)
def test_labels_that_are_no_class_numbers_are_told(y, labels, classes):
    assert names(check(csr(), y, for_="keras", labels=labels, classes=classes)) == {"label values"}


@pytest.mark.parametrize("y", [[0, 7], ["abc", "d"], [1, 0]])
def test_labels_that_vowpal_wabbit_takes_silently_are_errors(y):
    found = check(csr(), y, for_="vw")
    assert [breach.contract for breach in found] == ["label values"]


@pytest.mark.parametrize("y", [[0.0, np.nan], [np.inf, 1.0]])
def test_labels_that_are_not_finite_are_told(y):
    assert names(check(csr(), y, for_="pytorch")) == {"label values"}


def test_labels_of_several_classes_a_row_are_counted():
    assert not check(csr(), scipy.sparse.csr_array(np.eye(2)), for_="sklearn")
    assert names(check(csr(), scipy.sparse.csr_array(np.eye(3)), for_="sklearn")) == {"label count"}


@pytest.mark.covering(targets=targets_of_malformed)
@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize(("format", "fault"), INVALID)
def test_every_way_to_be_invalid_is_an_error_for_every_framework(format, fault, framework):
    assert any(breach.severity == "error" for breach in check(broken(format, fault), for_=framework))


@pytest.mark.parametrize("format", SPARSE)
def test_what_is_sound_has_no_error_of_structure(format):
    for framework in ("tensorflow", "pytorch", "sklearn"):
        found = check(sound(format), for_=framework)
        assert not {breach.contract for breach in found} & {"container", *STRUCTURE}


@pytest.mark.parametrize("x", [[[1, 2]], "text", None, np.ma.masked_array([[1.0]], [[True]])])
def test_what_is_no_matrix_is_a_breach(x):
    assert [breach.contract for breach in check(x, for_="sklearn")] == ["container"]


def test_a_matrix_of_one_dimension_is_a_breach():
    x = scipy.sparse.coo_array(np.float32([1, 0, 2]))
    assert "shape" in names(check(x, for_="pytorch"))


def test_require_raises_all_breaches_of_an_error():
    with pytest.raises(ContractError, match=r"width: It has 4 columns. Expected: 7") as refused:
        require(csr(data=NAN), for_="keras", width=7)
    assert names(refused.value.violations) == {"width", "finite"}


def test_require_gives_warnings_back():
    assert names(require(csr(data=np.float64([1, 2, 3])), for_="pytorch")) == {"float32"}


@pytest.mark.parametrize("asked", [{"for_": "theano"}, {"for_": "keras", "labels": "words"}])
def test_unknown_names_list_the_known_ones(asked):
    with pytest.raises(ValueError, match=r"Expected one of: (tensorflow, keras|classes, signs)"):
        check(csr(), [0, 1], **asked)


def test_the_command_takes_the_width_of_the_file_that_a_model_was_trained_on(tmp_path):
    for name, columns in (("train", 4), ("test", 3)):
        whole = {"data": np.float32([1]), "indices": np.int32([0]), "indptr": np.int32([0, 1])}
        np.savez(tmp_path / f"{name}.npz", format=np.array(b"csr"), shape=np.array([1, columns]), **whole)
    line = ["check", str(tmp_path / "test.npz"), "--for", "keras", "--like", str(tmp_path / "train.npz")]
    result = CliRunner().invoke(app, line)
    assert result.exit_code == 1
    assert "It has 3 columns. Expected: 4" in result.stdout
