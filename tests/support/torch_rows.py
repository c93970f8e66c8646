"""Sparse rows for tests of the bridge to PyTorch: adversarial ones that are allowed, and invalid ones."""

import numpy as np
import scipy.sparse

from workbench.formats.compressed import assemble


def drawn(rows: int = 8, columns: int = 30, index: str = "int32", dtype: str = "float32", seed: int = 0):
    """A csr_array with empty rows, repeated and unsorted columns, and a column in most rows."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 7, rows)
    lengths[::4] = 0
    indices = rng.integers(0, columns, lengths.sum())
    indices[::3] = 1
    starts = np.concatenate([[0], np.cumsum(lengths)])
    values = rng.standard_normal(indices.size)
    return assemble("csr", starts.astype(index), indices.astype(index), values.astype(dtype), (rows, columns))


def ones(x):
    """The same matrix with ones for values."""
    return assemble("csr", x.indptr, x.indices, np.ones_like(x.data), x.shape)


def dense(x) -> np.ndarray:
    """The dense matrix, duplicates summed."""
    return scipy.sparse.coo_array(x).toarray()


def invalid() -> dict[str, tuple]:
    """(indptr, indices, data) of 3 rows and 5 columns by what is wrong with them."""
    sound = {"indptr": [0, 1, 1, 3], "indices": [4, 0, 2], "data": [1.0, 2.0, 3.0]}
    wrong = {
        "column too large": {"indices": [4, 0, 5]},
        "column far outside": {"indices": [4, 0, 2**31 - 1]},
        "column below zero": {"indices": [4, -1, 2]},
        "starts fall": {"indptr": [0, 3, 1, 3]},
        "starts too far": {"indptr": [0, 1, 1, 4]},
        "starts too short": {"indptr": [0, 1, 1, 2]},
        "starts above zero": {"indptr": [1, 1, 1, 3]},
        "fewer values": {"data": [1.0]},
        "no starts": {"indptr": []},
    }
    types = {"indptr": np.int32, "indices": np.int32, "data": np.float32}
    cases = {name: sound | part for name, part in wrong.items()}
    arrays = {name: {key: np.array(part, types[key]) for key, part in case.items()} for name, case in cases.items()}
    arrays["mixed index widths"] = {key: np.array(part, types[key]) for key, part in sound.items()}
    arrays["mixed index widths"]["indptr"] = arrays["mixed index widths"]["indptr"].astype(np.int64)
    return {name: tuple(case.values()) for name, case in arrays.items()}
