#!/usr/bin/env bash
# SciPy 1.17.1: a COO array of three dimensions plus a NumPy array of fewer dimensions loses the sparse array: the sum is
# the NumPy array, broadcast. S - v is right, v - S and S + v with a full array of the same shape too, and S + v of two
# dimensions. count_nonzero(axis=...) counts along other axes than the one given and returns another shape.
#
# COO arrays of more than two dimensions came with SciPy 1.15; the text of count_nonzero says axis as NumPy has it.
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
dense = np.arange(24.0).reshape(2, 3, 4) % 5
dense[dense > 2] = 0
cube = sp.coo_array(dense)
vector = np.array([1.0, 2, 3, 4])
calls = {
    "S + v": (cube + vector, dense + vector),
    "v + S": (vector + cube, vector + dense),
    "S - v": (cube - vector, dense - vector),
    "S + full": (cube + dense, dense + dense),
    "S + S": ((cube + cube).toarray(), dense + dense),
    "matrix + v": (sp.coo_array(dense[0]) + vector, dense[0] + vector),
}
wrong = set()
for name, (got, right) in calls.items():
    print(f"{name:<11} first row {np.asarray(got).reshape(-1, 4)[0]}, NumPy {right.reshape(-1, 4)[0]}")
    if not np.array_equal(got, right):
        wrong.add(name)
for axis in range(3):
    got, right = cube.count_nonzero(axis=axis), np.count_nonzero(dense, axis=axis)
    print(f"count_nonzero(axis={axis}) {got.tolist()}, NumPy {right.tolist()}")
    if got.shape != right.shape:
        wrong.add(axis)
is_so = wrong == {"S + v", "v + S", 0, 1, 2} and bool((cube + vector == np.zeros((2, 3, 1)) + vector).all())
print("As described." if is_so else f"CHANGED: {wrong}")
sys.exit(not is_so)
PY
"$folder/venv/bin/python" "$folder/show.py"
