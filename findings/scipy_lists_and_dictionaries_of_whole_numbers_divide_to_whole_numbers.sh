#!/usr/bin/env bash
# SciPy 1.17.1: X / 2 of whole numbers is truncated for LIL and DOK, and for no other format: [[1, 3], [0, 5]] / 2 is
# [[0, 1], [0, 2]] with the type int64, where CSR, CSC, COO, BSR and DIA have [[0.5, 1.5], [0, 2.5]].
#
# Both take `numpy.result_type` of the two types for the result, which for whole numbers is one of them; X / 2.0 is
# right. LIL and DOK are the formats that SciPy recommends to build a matrix in, so counts collected in one of them and
# divided by the number of rows become zeros without a message.
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
counts = np.array([[1, 3], [0, 5]])
truncated = set()
for name in ("csr", "csc", "coo", "bsr", "dia", "lil", "dok"):
    x = sp.coo_array(counts).asformat(name)
    by_whole, by_float = x / 2, x / 2.0
    print(f"{name}: / 2 {by_whole.dtype} {by_whole.toarray().tolist()}, / 2.0 {by_float.toarray().tolist()}")
    assert np.array_equal(by_float.toarray(), counts / 2)
    if not np.array_equal(by_whole.toarray(), counts / 2):
        assert np.array_equal(by_whole.toarray(), counts // 2)
        truncated.add(name)
is_so = truncated == {"lil", "dok"}
print("As described." if is_so else f"CHANGED: {truncated}")
sys.exit(not is_so)
PY
"$folder/venv/bin/python" "$folder/show.py"
