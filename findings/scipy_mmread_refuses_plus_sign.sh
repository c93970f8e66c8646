#!/usr/bin/env bash
# SciPy 1.17.1: scipy.io.mmread refuses a value with a plus sign, "+1.5e+00", in a Matrix Market file.
#
# Fortran and C print such numbers (SP descriptor, "%+e"), and C's scanf, by which the format's own example code reads,
# takes them. SciPy's former reader, which is still in the package, takes them too; scipy.io.mmread has used another one
# (fast_matrix_market) since 1.12. A minus sign, and a plus sign in the exponent, are read by both.
# Exit status: 0 if this is still so, 1 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check scipy==1.17.1
cat >"$folder/show.py" <<'PY'
import io
import sys

import scipy
import scipy.io
from scipy.io import _mmio

print("SciPy", scipy.__version__)
READERS = {"scipy.io.mmread": scipy.io.mmread, "the former reader": lambda file: _mmio.MMFile().read(file)}
seen = {}
for value in ("1.5e+00", "-1.5e+00", "+1.5e+00"):
    text = f"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 {value}\n".encode()
    for name, read in READERS.items():
        try:
            seen[value, name] = float(read(io.BytesIO(text)).toarray()[0, 1])
        except ValueError as error:
            seen[value, name] = f"ValueError: {error}"
        print(f"{value:>9} by {name}: {seen[value, name]}")

own, former = READERS
is_so = seen["+1.5e+00", former] == 1.5 and "Invalid floating-point value" in str(seen["+1.5e+00", own])
others = all(seen[value, name] == float(value) for value in ("1.5e+00", "-1.5e+00") for name in READERS)
sys.exit(0 if is_so and others else 1)
PY
"$folder/venv/bin/python" "$folder/show.py"
