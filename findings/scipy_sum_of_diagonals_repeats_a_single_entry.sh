#!/usr/bin/env bash
# SciPy 1.17.1: A + B of two DIA arrays adds A's entry to the whole diagonal of B if [0, 0] is the only entry of A.
# With A = [[1, 0, 0], [0, 0, 0], [0, 0, 0]] and B = diag(1, 2, 3), A + B is diag(2, 3, 4) instead of diag(2, 2, 3).
#
# A DIA array keeps only as many columns as it needs: dia_array(A).data has the shape [1, 1], that of B [1, 3]. Both have
# the offsets [0], and then the two data arrays are added as NumPy does, by broadcasting. B - A, dia_matrix and an
# identity of eye_array are wrong as well. Two kept columns beside three are an error, though both arrays have the
# shape [2, 3]. A product of the same two, and a sum after tocsr(), are right.
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
first = np.zeros((3, 3))
first[0, 0] = 1
cases = {
    "array + array": (sp.dia_array(first), sp.dia_array(np.diag([1.0, 2, 3])), lambda a, b: a + b),
    "array - array": (sp.dia_array(first), sp.dia_array(np.diag([1.0, 2, 3])), lambda a, b: b - a),
    "matrix + matrix": (sp.dia_matrix(first), sp.dia_matrix(np.diag([1.0, 2, 3])), lambda a, b: a + b),
    "array + identity": (sp.dia_array(first), sp.eye_array(3, format="dia"), lambda a, b: a + b),
    "array * array": (sp.dia_array(first), sp.dia_array(np.diag([1.0, 2, 3])), lambda a, b: a * b),
    "CSR + CSR": (sp.csr_array(first), sp.csr_array(np.diag([1.0, 2, 3])), lambda a, b: a + b),
    "2 of 3 columns": (sp.dia_array([[1.0, 1, 0], [0, 1, 0]]), sp.dia_array([[1.0, 1, 0], [0, 1, 1]]), lambda a, b: a + b),
}
found = {}
for name, (a, b, call) in cases.items():
    right = call(a.toarray(), b.toarray())
    try:
        got = np.asarray(call(a, b).toarray())
        found[name] = "right" if np.array_equal(got, right) else "wrong"
        print(f"{name:<17} {found[name]}: the diagonal is {np.diag(got)}, expected {np.diag(right)}")
    except ValueError as error:
        found[name] = "error"
        print(f"{name:<17} {error}")
wrong = {name for name, how in found.items() if how == "wrong"}
is_so = wrong == set(list(cases)[:4]) and found["2 of 3 columns"] == "error"
print("As described." if is_so else f"CHANGED: {found}")
sys.exit(not is_so)
PY
"$folder/venv/bin/python" "$folder/show.py"
