#!/usr/bin/env bash
# scikit-learn 1.9.1: AdditiveChi2Sampler makes NaN of each zero that a CSR matrix stores, without an error: NumPy warns of
# a logarithm. The same numbers as a dense array, or after eliminate_zeros(), have 0 there.
#
# It takes the logarithm of every stored value and multiplies it by 0. A zero is stored, for example, after x.data[...] = 0,
# after x.multiply(mask), or in a file that has it. One such entry makes each linear model behind it refuse the matrix,
# for NaN that the user's data does not have.
# Exit status: 0 if this is still so, 1 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check scikit-learn==1.9.1
cat >"$folder/show.py" <<'PY'
import sys

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn.kernel_approximation import AdditiveChi2Sampler

print("scikit-learn", sklearn.__version__)
x = sp.csr_array(np.array([[1.0, 4.0, 2.0], [0.0, 3.0, 0.0]]))
x.data[x.data > 3.5] = 0.0  # too large to be believed
without = x.copy()
without.eliminate_zeros()


def features(form):
    """Return the features of the first row, and how many of all are NaN."""
    made = AdditiveChi2Sampler(sample_steps=2).fit_transform(form)
    made = made.toarray() if sp.issparse(made) else made
    return made[0].round(2).tolist(), int(np.isnan(made).sum())


dense, stored, eliminated = features(x.toarray()), features(x), features(without)
print("dense                ", *dense)
print("CSR, zeros eliminated", *eliminated)
print("CSR, a zero stored   ", *stored)
is_so = dense == eliminated and dense[1] == 0 and stored[1] == 2
print("As described." if is_so else "CHANGED")
sys.exit(not is_so)
PY
"$folder/venv/bin/python" "$folder/show.py"
