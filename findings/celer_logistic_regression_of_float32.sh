#!/usr/bin/env bash
# celer 0.7.4: LogisticRegression.fit refuses float32 X, sparse or dense, with "Buffer dtype mismatch, expected 'double'
# but got 'float'"; Lasso and ElasticNet fit it, and celer_path(pb="logreg") takes the same X and labels of float32.
#
# fit codes the classes as whole numbers, so its residuals are float64, and the compiled loop wants one type for all
# arrays. The path is called without that step: labels given to it as float32 stay so.
# Exit status: 0 if this is still so, 1 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check celer==0.7.4 scikit-learn==1.8.0 scipy==1.17.1 numpy==2.4.6
cat >"$folder/show.py" <<'PY'
import sys
import warnings

import celer
import numpy as np
import scipy.sparse as sp

warnings.simplefilter("ignore")
print("celer", celer.__version__)
generator = np.random.default_rng(0)
x = sp.csc_matrix(generator.standard_normal((200, 50)) * (generator.random((200, 50)) < 0.2))
labels = np.where(x @ generator.standard_normal(50) > 0, 1, -1)


def outcome(call):
    try:
        return call()
    except ValueError as error:
        return str(error)


found = {}
for name in ("float64", "float32"):
    typed = x.astype(name)
    found |= {
        f"{name} Lasso": outcome(lambda: celer.Lasso(alpha=0.01).fit(typed, labels).coef_.dtype.name),
        f"{name} LogisticRegression": outcome(lambda: celer.LogisticRegression().fit(typed, labels).coef_.dtype.name),
        f"{name} LogisticRegression, dense": outcome(
            lambda: celer.LogisticRegression().fit(typed.toarray(), labels).coef_.dtype.name
        ),
        f"{name} celer_path": outcome(
            lambda: celer.celer_path(typed, labels.astype(name), pb="logreg", n_alphas=3)[1].dtype.name
        ),
    }
for name, how in found.items():
    print(f"{name}: {how}")
refused = {name for name, how in found.items() if "mismatch" in how}
is_so = refused == {"float32 LogisticRegression", "float32 LogisticRegression, dense"}
print("As described." if is_so else "CHANGED")
sys.exit(not is_so)
PY
"$folder/venv/bin/python" "$folder/show.py"
