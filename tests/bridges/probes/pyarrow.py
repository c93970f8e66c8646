"""Probes of PyArrow: what each fact of `workbench/bridges/facts/pyarrow.toml` says, on the installed release."""

import pyarrow
import scipy.sparse

from tests.support.probes import repeated, right


def repeats_made_dense():
    x = scipy.sparse.csr_matrix(repeated())
    as_csr = pyarrow.SparseCSRMatrix.from_scipy(x).to_tensor().to_numpy()
    as_coo = pyarrow.SparseCOOTensor.from_scipy(x.tocoo()).to_tensor().to_numpy()
    outcomes = {right(made, repeated().toarray()) for made in (as_csr, as_coo)}
    return outcomes.pop() if len(outcomes) == 1 else f"differs: {outcomes}"
