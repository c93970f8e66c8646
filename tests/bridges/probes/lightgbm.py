"""Probes of LightGBM: what each fact of `workbench/bridges/facts/lightgbm.toml` says, on the installed release."""

import lightgbm
import numpy as np

from tests.support.probes import refusal, repeated, right, small

ROWS = 200


def predicted(x):
    """The predictions for the canonical rows by a model that is fitted on `x`."""
    y = (small(rows=ROWS).toarray()[:, :2].sum(axis=1) > 0).astype(int)
    settings = {"verbose": -1, "num_threads": 1, "objective": "binary", "min_data_in_leaf": 5}
    data = lightgbm.Dataset(x, label=y, params={"verbose": -1})
    return lightgbm.train(settings, data, 3).predict(small(rows=ROWS).toarray())


def integers():
    whole = (small(rows=ROWS) * 10).astype(np.int32)
    outcomes = {refusal(lambda: predicted(x), TypeError) for x in (whole, whole.astype(bool))}  # noqa: B023
    return outcomes.pop() if len(outcomes) == 1 else f"differs: {outcomes}"


def integers_dense():
    whole = (small(rows=ROWS) * 10).astype(np.int32).toarray()
    return right(predicted(whole), predicted(whole.astype(np.float32)))


def zeros_of_csr():
    return right(predicted(small(rows=ROWS)), predicted(small(rows=ROWS).toarray()))


def repeats():
    return right(predicted(repeated(rows=ROWS)), predicted(small(rows=ROWS)))
