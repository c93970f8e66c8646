"""Probes of anndata: what each fact of `workbench/bridges/facts/anndata.toml` says, on the installed release."""

import anndata
import scipy.sparse

from tests.support.probes import refusal, repeated, small


def coo():
    kinds = (scipy.sparse.coo_matrix(small()), scipy.sparse.lil_matrix(small()))
    outcomes = {refusal(lambda: anndata.AnnData(kind), ValueError, text="CSR and CSC") for kind in kinds}  # noqa: B023
    return outcomes.pop() if len(outcomes) == 1 else f"differs: {outcomes}"


def repeats():
    x = scipy.sparse.csr_matrix(repeated())
    return "costly" if anndata.AnnData(x).X.nnz == 4 * x.shape[0] > small().nnz else "sparse"
