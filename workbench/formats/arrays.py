"""Functions on arrays in any format: create, convert, copy, cast, assign.

>>> narrowed(np.float32([[0, 3], [255, 1]]), np.dtype(np.uint8)).tolist()
[[0, 3], [255, 1]]
"""

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike

from kernels import aligned
from workbench.formats.compressed import index_dtype
from workbench.formats.contract import (
    Coo,
    Format,
    as_shape,
    check_two_dimensions,
    check_values,
    coerce,
    get,
    refuse,
    validate,
)


def zeros(shape: tuple[int, ...], format: str = "dense", dtype: DTypeLike = np.float32) -> Any:
    """Create an array of zeros; sparse formats store no entries. O(rows), dense O(size).

    Parameters
    ----------
    shape : tuple of int
        Two dimensions for csr, csc and coo, one or more for row_sparse, any number for dense.
    format : str, default "dense"
        Name of the format.
    dtype : dtype_like, default numpy.float32
        Type of the values.

    Returns
    -------
    array
        Array of zeros in `format`.

    Raises
    ------
    FormatError
        If the format is unknown or does not support this shape or dtype.

    Examples
    --------
    >>> zeros((3, 2), "csr").indptr.tolist(), zeros((3, 2, 4), "row_sparse").nnz
    ([0, 0, 0, 0], 0)
    """
    target, shape = get(format), as_shape(shape)
    dtype = value_type(dtype, target)
    if target.zeros is not None:
        return target.zeros(shape, dtype)
    check_two_dimensions(shape, format)
    row = np.empty(0, index_dtype(*shape))
    return target.from_coo(Coo(row, row.copy(), np.empty(0, dtype), shape))


def to_format(x: Any, format: str) -> Any:
    """Convert an array to another format.

    The dtype of values is kept. Indices keep their dtype unless shape or nnz need int64; dense gives int32 if that
    suffices. csr, csc and coo keep duplicates, order and explicit zeros where both formats allow them; dense and
    row_sparse sum duplicates and lose explicit zeros. O(nnz + rows + columns); O(size) to or from dense.

    Parameters
    ----------
    x : array_like
        Array in any format. It is not modified.
    format : str
        Name of the target format.

    Returns
    -------
    array
        The array in `format`; `x` itself if it is in that format already.

    Raises
    ------
    FormatError
        If the format is unknown, `x` is invalid, or the format does not support its shape or dtype (no SciPy format
        supports float16).

    Examples
    --------
    >>> import scipy.sparse
    >>> x = scipy.sparse.coo_array((np.ones(2, np.float32), ([0, 1], [1, 0])), shape=(2, 3))
    >>> to_format(x, "row_sparse")
    RowSparse(shape=(2, 3), stored_rows=2, dtype=float32)
      row 0: [0. 1. 0.]
      row 1: [1. 0. 0.]
    """
    target = get(format)
    source, x = validate(x)
    check_values(x, f"The {source.name} array", source.dtypes)
    if source is target:
        return x
    value_type(x.dtype, target)
    if format in source.direct:
        return source.direct[format](x)
    return target.from_coo(source.to_coo(x))


def copy(x: Any) -> Any:
    """Copy an array of any format: values, sparsity pattern, format and dtypes.

    Parameters
    ----------
    x : array_like
        Array in any format.

    Returns
    -------
    array
        Array with memory of its own. A SciPy matrix is returned as an array.

    Raises
    ------
    FormatError
        If `x` is invalid or in none of the formats.

    Examples
    --------
    >>> x = np.ones(2, np.float32)
    >>> copy(x) is x
    False
    """
    format, x = validate(x)
    return format.build({name: aligned.copy(part) for name, part in format.parts(x).items()}, x.shape)


def astype(x: Any, dtype: DTypeLike, copy: bool = True) -> Any:
    """Cast the values of an array as NumPy does (floats are truncated towards zero); the sparsity pattern is kept.

    Parameters
    ----------
    x : array_like
        Array in any format. It is not modified.
    dtype : dtype_like
        Type of the values of the result. Values that become zero stay stored.
    copy : bool, default True
        If False, the result may share indices with `x`, and is `x` itself if the dtype is the same.

    Returns
    -------
    array
        Array in the same format.

    Raises
    ------
    FormatError
        If `x` is invalid or its format does not support `dtype`.

    Examples
    --------
    >>> astype(zeros((2, 2), "csc"), np.int64).dtype
    dtype('int64')
    """
    format, x = validate(x)
    dtype = value_type(dtype, format)
    if not copy and x.dtype == dtype:
        return x
    (name, values), *indices = format.parts(x).items()
    parts = {name: values.astype(dtype)} | {name: part.copy() if copy else part for name, part in indices}
    return format.build(parts, x.shape)


def canonical(x: Any) -> Any:
    """Return sparse `x` without duplicates, csr and csc sorted; over the memory of `x` if it is so already. O(nnz).

    `x` itself is not changed, and what SciPy remembers of its order is not believed: the owner may have written to its
    arrays since.
    """
    if x.format == "row_sparse":
        return x
    format = get(x.format)
    fresh = format.build(format.parts(x), x.shape)
    if _rises(fresh) if x.format == "coo" else fresh.has_canonical_format:
        return fresh
    fresh = format.build({name: part.copy() for name, part in format.parts(x).items()}, x.shape)
    fresh.sum_duplicates()
    return fresh


def _rises(x: Any) -> bool:
    """Return whether the entries of a coo array are sorted by row and column without duplicates."""
    row, col = x.row, x.col
    return bool(((row[1:] > row[:-1]) | ((row[1:] == row[:-1]) & (col[1:] > col[:-1]))).all())


def assign(destination: Any, source: Any) -> Any:
    """Overwrite an array with the values of another one, or with a scalar.

    Parameters
    ----------
    destination : array_like
        Array in any format; modified in place. It keeps its format and dtype, and a sparse one takes the sparsity
        pattern
        of `source`.
    source : array_like or scalar
        Array of the same shape in any format, or a scalar for dense and row_sparse (of which all rows are then stored).

    Returns
    -------
    array
        `destination`.

    Raises
    ------
    FormatError
        If shapes differ, an array is invalid, or a scalar is assigned to csr, csc or coo.

    Examples
    --------
    >>> x = np.zeros((2, 2), np.float32)
    >>> assign(x, to_format(np.eye(2), "csr"))
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    target, view = coerce(destination)
    if isinstance(source, int | float | np.number):
        result = _make_filled(target.name, view.shape, view.dtype, source)
    else:
        _, source = coerce(source)
        if source.shape != view.shape:
            problem = f"An array of shape {source.shape} was assigned to one of shape {view.shape}"
            raise refuse(problem, "arrays of the same shape, and numbers", "Take a part of it or reshape it")
        result = to_format(source, target.name)
        if target.name != "dense":
            result = astype(result, view.dtype)
    target.replace(destination, target.parts(result))
    return destination


def _make_filled(format: str, shape: tuple[int, ...], dtype: np.dtype, number: Any) -> Any:
    """Return an array of `shape` in `format` with every value equal to `number`; FormatError for csr, csc and coo."""
    if format not in ("dense", "row_sparse"):
        advice = "Assign np.full(x.shape, number, x.dtype) if every entry is to be stored"
        raise refuse(f"The number {number} was assigned to a {format} array", "arrays", advice)
    dense = np.full(shape, number, dtype)
    if format == "dense":
        return dense
    return get(format).build({"values": dense, "indices": np.arange(shape[0])}, shape)


def value_type(dtype: DTypeLike, format: Format) -> np.dtype:
    """Return `dtype` as a numpy.dtype. Raises FormatError if the format does not support it."""
    dtype = np.dtype(dtype)
    if dtype not in format.dtypes:
        allowed = ", ".join(map(str, format.dtypes))
        raise refuse(f"A {format.name} array of {dtype} was asked for", allowed, "Choose one of these types")
    return dtype


# Dense arrays of a smaller type, if it has every value exactly.


VALUES_AT_ONCE = 1 << 20
"""Values that are converted at once: a few MB in addition to the result."""


def narrowed(x: Any, dtype: np.dtype) -> np.ndarray:
    """Convert a matrix [rows, columns] of any format to a dense array of `dtype`; return `x` itself if it is one.

    Raises FormatError if a value is not exactly representable. O(size); besides the result a few MB.
    """
    _, x = coerce(x)
    if isinstance(x, np.ndarray) and x.dtype == dtype:
        return x
    rows, columns = x.shape
    out = np.empty((rows, columns), dtype)
    step = max(VALUES_AT_ONCE // max(columns, 1), 1)
    source = x if isinstance(x, np.ndarray) else to_format(x, "csr")
    for start in range(0, rows, step):
        part = to_format(source[start : start + step], "dense")
        with np.errstate(invalid="ignore", over="ignore"):  # what does not fit is told below
            out[start : start + step] = part
        _refuse_inexact(part, out[start : start + step], start)
    return out


def _refuse_inexact(part: np.ndarray, out: np.ndarray, first: int) -> None:
    """Raise FormatError if the cast rows `out` differ from the rows `part`; the message names the first such value.

    `first` is the row of the matrix at which both start.
    """
    if (wrong := np.argwhere(out != part)).size:
        row, column = wrong[0].tolist()
        raise refuse(
            f"The value {part[row, column]:.9g} at row {first + row}, column {column} is not exact in {out.dtype}",
            "whole numbers from 0 to 255 in uint8, numbers of 11 binary digits up to 65504 in float16",
            "Hold the data as csr or in the format's own type: storage = csr or storage = same",
        )


def library_of(value: Any) -> str:
    """Return the top-level package that a value's type comes from.

    >>> library_of(np.ones(2))
    'numpy'
    """
    return type(value).__module__.partition(".")[0]


def computed(x: Any) -> Any:
    """Return what a Dask collection holds: an array, a sparse matrix or a pandas frame; other values unchanged."""
    return x.compute() if library_of(x) == "dask" and hasattr(x, "compute") else x


def host_array(x: Any) -> Any:
    """Return tensors and matrices of other libraries as NumPy or SciPy arrays on the host; other values unchanged.

    These are tensors of PyTorch, TensorFlow and CuPy, BCOO and BCSR of JAX, matrices that AnnData left on disk, pydata
    sparse, tabmat, tensors of pyarrow, and pandas frames with sparse columns. Dask collections are computed. What is
    sparse stays so; entries of a CSR tensor keep their order, and padding of JAX is left out. Raises FormatError for a
    sparse array whose fill value is not 0 and for a sparse tensor with dense dimensions, ValueError for text in a frame
    with sparse columns.
    """
    library = library_of(x)
    if library in ("numpy", "scipy"):
        return x
    if library == "dask" and hasattr(x, "compute"):
        return host_array(x.compute())
    if library == "torch":
        return _from_torch(x.detach().cpu())
    if library == "tensorflow":
        return _from_tensorflow(x)
    if library == "jax" and hasattr(x, "nse"):
        return _from_jax(x)
    if library == "cupyx" or library == "cupy":
        return x.get()
    if library == "anndata" and hasattr(x, "to_memory"):
        return x.to_memory()
    if library == "sparse" and hasattr(x, "fill_value"):
        return _from_pydata(x)
    if library == "pyarrow" and hasattr(x, "dim_names"):  # tensors; tables and columns have none
        x = x.to_tensor() if x.ndim != 2 and hasattr(x, "to_tensor") else x
        return x.to_scipy() if hasattr(x, "to_scipy") else (x.to_tensor() if hasattr(x, "to_tensor") else x).to_numpy()
    if library == "tabmat":
        return _from_tabmat(x)
    return matrix_of_sparse_frame(x) if has_sparse_columns(x) else x


def dense_target(y: Any) -> Any:
    """Return targets as `host_array` does, sparse ones as a dense array [rows, N], of one column [rows]."""
    y = host_array(y)
    if not hasattr(y, "toarray"):
        return y
    return y.toarray()[:, 0] if y.shape[1] == 1 else y.toarray()


def _from_pydata(x: Any) -> Any:
    """Return an array of pydata sparse as a SciPy array, dense unless it has two dimensions; FormatError by its fill.

    A fill value is what every place that is not stored has: 0 in all other sparse formats.
    """
    if x.fill_value != 0:
        problem = f"The sparse array has the fill value {x.fill_value}"
        raise refuse(problem, "a fill value of 0", "Type X.todense() for a dense array")
    if x.ndim != 2:
        return x.todense()
    return (x if hasattr(x, "to_scipy_sparse") else x.asformat("coo")).to_scipy_sparse()


def _from_tabmat(x: Any) -> Any:
    """Return a matrix of tabmat as a SciPy array, sparse unless it is a dense or standardized one."""
    if hasattr(x, "matrices"):  # parts of some columns each
        parts = [scipy.sparse.csc_array(host_array(part)) for part in x.matrices]
        return scipy.sparse.hstack(parts, format="csc")[:, np.argsort(np.concatenate(x.indices))]
    call = next(name for name in ("tocsr", "tocsc", "toarray") if hasattr(x, name))
    return getattr(x, call)()


def has_sparse_columns(x: Any) -> bool:
    """Return whether `x` is a pandas frame of which a column holds sparse values."""
    return hasattr(x, "iloc") and hasattr(x, "columns") and any(str(dtype).startswith("Sparse") for dtype in x.dtypes)


def matrix_of_sparse_frame(frame: Any) -> scipy.sparse.csc_array:
    """Return the matrix [rows, columns] of a pandas frame of numbers; one column at a time is dense at most.

    It is float64 if a column has that type, else float32. Sparse columns may have any fill value. Raises ValueError for
    a column of text.
    """
    is_double = any(str(getattr(dtype, "subtype", dtype)).lower() == "float64" for dtype in frame.dtypes)
    dtype = np.float64 if is_double else np.float32
    indices, values = [], []
    for place in range(frame.shape[1]):
        column = frame.iloc[:, place]
        if hasattr(column.dtype, "subtype") and column.array.fill_value == 0:
            stored, entries = column.array.sp_index.to_int_index().indices, column.array.sp_values
        else:
            entries = column.to_numpy(dtype)
            stored = np.flatnonzero(entries)
            entries = entries[stored]
        indices.append(stored)
        values.append(np.asarray(entries, dtype))
    indptr = np.cumsum([0, *map(len, indices)])
    return scipy.sparse.csc_array((np.concatenate(values), np.concatenate(indices), indptr), shape=frame.shape)


def _from_torch(tensor: Any) -> Any:
    """Return a PyTorch CPU tensor as a NumPy array or a CSR or COO array over its memory, where NumPy has its type.

    Floats of 8 and 16 bits become float32, which SciPy takes. Other sparse layouts become COO. Raises FormatError for a
    sparse tensor with dense dimensions.
    """
    is_dense = str(tensor.layout) == "torch.strided"
    kept = ("torch.float32", "torch.float64", "torch.float16")[: 3 if is_dense else 2]
    if tensor.is_floating_point() and str(tensor.dtype) not in kept:
        tensor = tensor.float()
    if is_dense:
        return tensor.numpy()
    if tensor.dense_dim():
        problem = f"The sparse tensor of shape {list(tensor.shape)} has {tensor.dense_dim()} dense dimensions"
        raise refuse(problem, "none", "Type tensor.to_dense().to_sparse()")
    if str(tensor.layout) == "torch.sparse_csr" and tensor.ndim == 2:
        parts = tensor.values().numpy(), tensor.col_indices().numpy(), tensor.crow_indices().numpy()
        return scipy.sparse.csr_array(parts, shape=tuple(tensor.shape))
    entries = tensor.to_sparse_coo()
    return scipy.sparse.coo_array((entries._values().numpy(), tuple(entries._indices().numpy())), tuple(entries.shape))


def _from_tensorflow(tensor: Any) -> Any:
    """Return a TensorFlow tensor as a NumPy array, or as a COO array if it is sparse; bfloat16 becomes float32."""
    is_sparse = hasattr(tensor, "dense_shape")
    values = (tensor.values if is_sparse else tensor).numpy()
    if values.dtype.kind == "V" or (is_sparse and values.dtype == np.float16):
        values = values.astype(np.float32)  # SciPy has neither, NumPy no bfloat16
    if not is_sparse:
        return values
    shape = tuple(int(size) for size in tensor.dense_shape)
    return scipy.sparse.coo_array((values, tuple(tensor.indices.numpy().T)), shape=shape)


def _from_jax(x: Any) -> Any:
    """Return a BCOO or BCSR matrix of JAX as a COO or CSR array, without the padding of BCOO.

    Raises FormatError for batches of matrices and for dense dimensions.
    """
    if getattr(x, "n_batch", 0) or getattr(x, "n_dense", 0):
        problem = f"The sparse array of shape {tuple(x.shape)} has batch or dense dimensions"
        raise refuse(problem, "none", "Type x.update_layout(n_batch=0, n_dense=0)")
    values, indices = np.asarray(x.data), np.asarray(x.indices)
    if hasattr(x, "indptr"):
        return scipy.sparse.csr_array((values, indices, np.asarray(x.indptr)), shape=tuple(x.shape))
    is_stored = (indices < np.array(x.shape)).all(axis=1)
    return scipy.sparse.coo_array((values[is_stored], tuple(indices[is_stored].T)), shape=tuple(x.shape))
