#!/usr/bin/env bash
# SciPy 1.17.1: a COO array of one dimension in which a place is stored twice is right in sum(), dot(), toarray(), * 2 and
# max(); x + x, x * x, x.maximum(x) and x @ x are wrong. Of [0, 0, 0, 3, 0, 0, 5, 0] x + x ends with 20 instead of 10.
#
# COO allows a place several times, and means their sum. The last value is taken for those behind the end; two dimensions,
# and one dimension after sum_duplicates() or tocsr(), are right. NumPy's @ on the same numbers gives 34, SciPy's 59.
# Exit status: 0 if this is still so, 1 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check scipy==1.17.1 numpy==2.4.6
cat >"$folder/show.py" <<'PY'
import sys

import numpy as np
import scipy
import scipy.sparse as sp

print("SciPy", scipy.__version__)
twice = sp.coo_array((np.array([1.0, 2, 5]), (np.array([3, 3, 6]),)), shape=(8,))
once = twice.copy()
once.sum_duplicates()
matrix = twice.reshape(1, 8)
calls = {
    "sum": lambda x: x.sum(),
    "x * 2": lambda x: x * 2,
    "x @ dense": lambda x: x @ x.toarray().T,
    "max": lambda x: x.max(),
    "x + x": lambda x: x + x,
    "x * x": lambda x: x * x,
    "maximum": lambda x: x.maximum(x),
    "x @ x": lambda x: x @ x.T,
}
wrong = set()
for name, call in calls.items():
    got, right, rows = (call(x.copy()) for x in (twice, once, matrix))
    got, right, rows = (np.ravel(x.toarray() if sp.issparse(x) else x) for x in (got, right, rows))
    print(f"{name:<9} {got}, after sum_duplicates() {right}")
    assert np.array_equal(right, rows), "two dimensions are right"
    if not np.array_equal(got, right):
        wrong.add(name)
is_so = wrong == {"x + x", "x * x", "maximum", "x @ x"}
print("As described." if is_so else f"CHANGED: {wrong}")
sys.exit(not is_so)
PY
"$folder/venv/bin/python" "$folder/show.py"
