"""XGBoost and LightGBM: training, conversion included, and predictions."""

from typing import Any

import numpy as np

from benchmarks.libraries import Calls, Data, Operation

OPERATIONS: list[Operation] = []

TREES = 3


def xgboost_model(x: Any, data: Data) -> Any:
    """Return a booster of a few trees; zeros are missing in both forms."""
    import xgboost

    settings = {"max_depth": 4, "nthread": data.threads, "objective": "binary:logistic", "tree_method": "hist"}
    return xgboost.train(settings, xgboost.QuantileDMatrix(x, data.y, missing=0.0), TREES)


def xgboost_train(data: Data) -> Calls:
    """Train from the rows; return the predictions for some of them."""
    import xgboost

    some = xgboost.DMatrix(data.dense[:256], missing=0.0)
    return (
        lambda: xgboost_model(data.csr, data).predict(some),
        lambda: xgboost_model(data.dense, data).predict(some),
    )


def xgboost_predict(data: Data) -> Calls:
    """Return predictions for all rows."""
    model = xgboost_model(data.csr, data)
    return lambda: model.inplace_predict(data.csr, missing=0.0), lambda: model.inplace_predict(data.dense, missing=0.0)


def lightgbm_model(x: Any, data: Data) -> Any:
    """Return a booster of a few trees."""
    import lightgbm

    settings = {"objective": "binary", "num_leaves": 15, "num_threads": data.threads, "verbose": -1, "seed": 0}
    settings |= {"deterministic": True, "force_col_wise": True}
    return lightgbm.train(settings, lightgbm.Dataset(x, data.y), TREES)


def lightgbm_train(data: Data) -> Calls:
    """Train from the rows; return the predictions for some of them."""
    some = data.dense[:256]
    return (
        lambda: np.asarray(lightgbm_model(data.csr, data).predict(some)),
        lambda: np.asarray(lightgbm_model(data.dense, data).predict(some)),
    )


def lightgbm_predict(data: Data) -> Calls:
    """Return predictions for all rows."""
    model = lightgbm_model(data.csr, data)
    return lambda: np.asarray(model.predict(data.csr)), lambda: np.asarray(model.predict(data.dense))


_small = {"rows": 4096, "features": 128}
for _what, _make, _library, _package in (
    ("QuantileDMatrix and 3 trees", xgboost_train, "XGBoost", "xgboost"),
    ("predict", xgboost_predict, "XGBoost", "xgboost"),
    ("Dataset and 3 trees", lightgbm_train, "LightGBM", "lightgbm"),
    ("predict", lightgbm_predict, "LightGBM", "lightgbm"),
):
    _note = "missing=0.0: zeros are missing values in both forms" if _package == "xgboost" else ""
    OPERATIONS.append(Operation(_library, _what, _make, _package, 0.05, note=_note, **_small))
