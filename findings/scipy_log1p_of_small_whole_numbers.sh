#!/usr/bin/env bash
# SciPy 1.17.1: log1p(), sqrt(), expm1() of a sparse array of uint8, int8 or bool raise "scipy.sparse does not support
# dtype float16"; uint16 gives float32 and int32 float64. So counts that fit in a byte have no log1p in the type that
# takes least memory. A DIA array of uint8 returns float16, which then can neither be shown nor converted.
#
# The methods call the ufunc of NumPy on the stored values, whose result for types of one byte is float16, and SciPy has
# no sparse arrays of float16. To convert before, X.astype("float32").log1p(), is right.
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
counts = np.array([[1, 0], [0, 3]])
found = {}
for dtype in ("bool", "int8", "uint8", "uint16", "int32"):
    for name in ("csr", "csc", "coo", "bsr", "dia"):
        x = sp.coo_array(counts.astype(dtype)).asformat(name)
        try:
            result = x.log1p()
            found[dtype, name] = result.dtype.name
            if result.dtype == np.float16:
                result.tocsr()
        except ValueError as error:
            found[dtype, name] = f"{found.get((dtype, name), '')} {str(error)[:44]}".strip()
    print(dtype, {name: how for (one, name), how in found.items() if one == dtype})
small = {how for (dtype, name), how in found.items() if dtype in ("bool", "int8", "uint8") and name != "dia"}
is_so = (
    small == {"scipy.sparse does not support dtype float16."}
    and all(found[dtype, "dia"].startswith("float16 ") for dtype in ("bool", "int8", "uint8"))
    and {how for (dtype, _), how in found.items() if dtype == "uint16"} == {"float32"}
    and np.allclose(sp.csr_array(counts.astype("uint8")).astype("float32").log1p().toarray(), np.log1p(counts))
)
print("As described." if is_so else "CHANGED")
sys.exit(not is_so)
PY
"$folder/venv/bin/python" "$folder/show.py"
