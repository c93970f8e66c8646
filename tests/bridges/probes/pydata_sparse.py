"""Probes of pydata sparse: what `workbench/bridges/facts/pydata_sparse.toml` says, on the installed release."""

import io

import numpy as np
import scipy.sparse
import sparse

from tests.support.probes import refusal, right


def archive_in_scipy():
    x, stored = sparse.COO.from_numpy(np.array([[1.0, 1.0, 3.0]]), fill_value=1.0), io.BytesIO()
    sparse.save_npz(stored, x)
    stored.seek(0)
    return right(scipy.sparse.load_npz(stored).toarray(), x.todense())


def asarray():
    return refusal(lambda: np.asarray(sparse.COO.from_numpy(np.eye(3))), RuntimeError)


def fill_value_to_scipy():
    return refusal(lambda: (sparse.COO.from_numpy(np.eye(3)) + 1).to_scipy_sparse(), ValueError, text="fill_value")
