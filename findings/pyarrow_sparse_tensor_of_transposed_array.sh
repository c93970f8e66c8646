#!/usr/bin/env bash
# pyarrow 26.0.1: SparseCOOTensor.from_dense_numpy of an array in Fortran order, such as any X.T, gives another matrix.
#
# Entries come to other places or are lost. The three other sparse tensors of pyarrow, CSR, CSC and CSF, are right for
# the same array, and so is COO of a strided slice.
# Exit status: 0 if this is still so, 1 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pyarrow==26.0.1 numpy==2.4.6
cat >"$folder/show.py" <<'PY'
import sys

import numpy as np
import pyarrow as pa

print("pyarrow", pa.__version__)
matrix = np.array([[0.0, 5.0, 0.0], [7.0, 0.0, 9.0]])
arrays = {"C order": matrix, "Fortran order": np.asfortranarray(matrix), "transposed": matrix.T.copy().T}
arrays["slice"] = np.repeat(np.repeat(matrix, 2, 0), 2, 1)[::2, ::2]
wrong = set()
for order, array in arrays.items():
    assert (array == matrix).all()
    for kind in (pa.SparseCOOTensor, pa.SparseCSRMatrix, pa.SparseCSCMatrix, pa.SparseCSFTensor):
        tensor = kind.from_dense_numpy(array)
        back = tensor.to_tensor().to_numpy()
        print(f"{order:<13} {kind.__name__:<16} {back.tolist()}")
        if not np.array_equal(back, matrix):
            wrong.add((order, kind.__name__))
is_so = wrong == {(order, "SparseCOOTensor") for order in ("Fortran order", "transposed")}
print("As described." if is_so else f"CHANGED: {wrong}")
sys.exit(not is_so)
PY
"$folder/venv/bin/python" "$folder/show.py"
