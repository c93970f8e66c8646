#!/usr/bin/env bash
# Numba 0.68.1: sum, mean and std of a float32 array add the numbers one after the other in float32. Of 2**26 numbers that
# are all 0.1 the mean is 0.03125 and the standard deviation 0.069; of a million the mean is 1 % too large.
#
# NumPy adds in pairs, so that the same calls are right to the last digits: jitting a correct function changes its result.
# From a sum of 2**21 on each addition of 0.1 is rounded away. Numba's own nanmean adds in float64 and is right. The way
# around: numpy.nanmean, x.astype(numpy.float64), or a loop with a float64 accumulator.
# Exit status: 0 if this is still so, 1 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numba==0.68.1 numpy==2.4.6
cat >"$folder/show.py" <<'PY'
import sys

import numba
import numpy as np

print("Numba", numba.__version__, "NumPy", np.__version__)
functions = {"mean": lambda x: x.mean(), "sum / size": lambda x: x.sum() / x.size, "std": lambda x: np.std(x)}
functions["nanmean"] = lambda x: np.nanmean(x)
is_so = True
for exponent in (10, 20, 26):
    x = np.full(2**exponent, 0.1, np.float32)
    for name, function in functions.items():
        ours, theirs = float(function(x)), float(numba.njit(function)(x))
        print(f"2**{exponent} times 0.1, {name:<10} NumPy {ours:.6f}, Numba {theirs:.6f}")
        right = 0.0 if name == "std" else 0.1
        is_so &= abs(ours - right) < 1e-5
        is_right = exponent == 10 or name == "nanmean"
        is_so &= abs(theirs - right) < 1e-5 if is_right else abs(theirs - right) > {20: 0.0009, 26: 0.068}[exponent]
print("As described." if is_so else "CHANGED")
sys.exit(not is_so)
PY
"$folder/venv/bin/python" "$folder/show.py"
