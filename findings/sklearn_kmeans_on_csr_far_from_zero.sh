#!/usr/bin/env bash
# scikit-learn 1.9.1: KMeans on a float32 CSR matrix with one column far from zero finds groups that are not there, or
# misses those that are, without a warning. The same numbers as a dense array are grouped right.
#
# KMeans subtracts the mean of a dense array before it computes distances as |x|^2 - 2 x.c + |c|^2; of a sparse matrix it
# cannot. Values near 500,000 (cents, metres) beside one-hot columns are enough in float32, a time stamp in
# float64 (the inertia, by which runs and splits are compared, is then 0). The docs of KMeans do not say so.
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
from sklearn.cluster import BisectingKMeans, KMeans

print("scikit-learn", sklearn.__version__)
warnings.simplefilter("error")


def share_right(method, dtype, far, form):
    """Return the share of 400 rows in the right one of two groups, and the inertia."""
    generator = np.random.default_rng(0)
    group = np.repeat([0, 1], 200)
    rows = np.c_[generator.normal(far, 1, 400), 20.0 * (group == 0), 20.0 * (group == 1)].astype(dtype)
    fitted = method(2, random_state=0, n_init=5).fit(form(rows))
    right = (fitted.labels_ == group).mean()
    return max(right, 1 - right), float(fitted.inertia_)


is_so = True
cases = [(KMeans, "float32", 0, True), (KMeans, "float32", 5e5, False), (BisectingKMeans, "float32", 5e5, False)]
cases += [(BisectingKMeans, "float64", 5e5, True), (BisectingKMeans, "float64", 1.7e9, False)]
for method, dtype, far, is_right in cases:
    dense, sparse = (share_right(method, dtype, far, form) for form in (np.asarray, sp.csr_array))
    shares = f"right in dense {dense[0]:.0%} (inertia {dense[1]:.0f}), in CSR {sparse[0]:.0%} (inertia {sparse[1]:.0f})"
    print(f"{method.__name__:<15} {dtype}, column at {far:>10.0f}: {shares}")
    is_so &= dense[0] == 1 and (sparse[0] == 1 and abs(sparse[1] - dense[1]) < 1) == is_right
print("As described." if is_so else "CHANGED")
sys.exit(not is_so)
PY
"$folder/venv/bin/python" "$folder/show.py"
