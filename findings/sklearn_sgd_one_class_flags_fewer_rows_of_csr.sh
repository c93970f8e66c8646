#!/usr/bin/env bash
# scikit-learn 1.9.1: SGDOneClassSVM(nu=0.5) flags half of the rows of a dense array as outliers, as nu says, and less than
# a quarter of the same rows as CSR. It ends by its own tolerance in both, and no warning comes.
#
# SGD estimators multiply the steps of the intercept by 0.01 if X is sparse. Of a classifier the weights make up for most
# of it; of SGDOneClassSVM the intercept is the threshold, which stops where it has hardly left its start. The docs of the
# class do not say so: they say that nu is an upper bound on the share of errors and a lower one on that of support
# vectors. OneClassSVM(kernel="linear") flags the same share of both.
# Exit status: 0 if this is still so, 1 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check scikit-learn==1.9.1
cat >"$folder/show.py" <<'PY'
import sys
import warnings

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn.linear_model import SGDOneClassSVM
from sklearn.svm import OneClassSVM

print("scikit-learn", sklearn.__version__)
warnings.simplefilter("error")
generator = np.random.default_rng(0)
rows = np.where(generator.random((2000, 50)) < 0.2, generator.random((2000, 50)), 0.0)


def share_flagged(model, x):
    """Return the share of the rows that a model fitted to them calls outliers."""
    return float((model.fit(x).predict(x) < 0).mean())


is_so = True
for nu in (0.1, 0.2, 0.5):
    models = {"SGDOneClassSVM": SGDOneClassSVM(nu=nu, random_state=0), "OneClassSVM": OneClassSVM(nu=nu, kernel="linear")}
    for name, model in models.items():
        dense, sparse = (share_flagged(model, form(rows)) for form in (np.asarray, sp.csr_array))
        print(f"{name:<14} nu {nu:.1f}: flagged of the dense rows {dense:.1%}, of the same rows as CSR {sparse:.1%}")
        is_so &= abs(dense - nu) < 0.02
        is_so &= sparse < 0.6 * nu if name == "SGDOneClassSVM" else abs(sparse - dense) < 0.01
print("As described." if is_so else "CHANGED")
sys.exit(not is_so)
PY
"$folder/venv/bin/python" "$folder/show.py"
