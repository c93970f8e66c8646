"""Probes of pandas: what each fact of `workbench/bridges/facts/pandas.toml` says, on the installed release."""

import io

import numpy as np
import pandas as pd
import scipy.sparse

from tests.support.probes import refusal, small


def frame():
    return pd.DataFrame.sparse.from_spmatrix(scipy.sparse.csr_matrix(small()), columns=list("abcde"))


def frame_to_parquet():
    return refusal(lambda: frame().to_parquet(io.BytesIO()), TypeError, text="not supported")


def fill_value_of_one():
    assert all(isinstance(dtype, pd.SparseDtype) for dtype in (frame() + 1).dtypes)
    return refusal(lambda: (frame() + 1).sparse.to_coo(), ValueError, text="fill value")


def values_of_a_frame():
    both = frame().to_numpy(), np.asarray(frame())
    return "densifies" if all(isinstance(made, np.ndarray) for made in both) else "sparse"
