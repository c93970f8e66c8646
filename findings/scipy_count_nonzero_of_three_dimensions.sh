#!/usr/bin/env bash
# SciPy 1.17.1: count_nonzero(axis=a) of a COO array of three dimensions is no count along axis a. Of shape [2, 3, 4] it
# returns 3 numbers for axis=0, 2 for axis=1 and 4 for axis=2; NumPy returns [3, 4], [2, 4] and [2, 3].
#
# It counts entries by their index in axis 1 - a, which in two dimensions is the other axis. For axis=2 that is axis -1,
# which is axis 2 again: the entries that each index of the axis itself has. No error is raised, and sum, mean and max
# of the same array along the same axes are right; (x != 0).sum(axis=a) counts as NumPy does.
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


def dense_of(x):
    return x.toarray() if sp.issparse(x) else np.asarray(x)


print("SciPy", scipy.__version__)
dense = np.arange(24).reshape(2, 3, 4) % 5
x = sp.coo_array(dense)
is_so = True
for axis in range(3):
    got, right = x.count_nonzero(axis=axis), np.count_nonzero(dense, axis=axis)
    others = tuple(one for one in range(3) if one != (1 - axis) % 3)
    print(f"axis {axis}: SciPy {got.tolist()}, NumPy {right.tolist()}")
    is_so &= np.array_equal(got, np.count_nonzero(dense, axis=others)) and got.shape != right.shape
    assert np.array_equal(dense_of((x != 0).sum(axis=axis)), right)
    assert np.array_equal(dense_of(x.sum(axis=axis)), dense.sum(axis=axis))
print("As described." if is_so else "CHANGED")
sys.exit(not is_so)
PY
"$folder/venv/bin/python" "$folder/show.py"
