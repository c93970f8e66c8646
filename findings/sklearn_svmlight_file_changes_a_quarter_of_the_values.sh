#!/usr/bin/env bash
# scikit-learn 1.9.1: of random float64 values a quarter is another one after dump_svmlight_file and load_svmlight_file.
#
# They are written with 16 digits ("%.16g"); 17 are needed. Labels change as well, so that groups by a real label, or a
# search for a value, fail. SciPy's mmwrite writes as many digits as it takes, and all values come back. The docstring of
# dump_svmlight_file does not say so.
# Exit status: 0 if this is still so, 1 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check scikit-learn==1.9.1
cat >"$folder/show.py" <<'PY'
import io
import sys

import numpy as np
import scipy.io
import scipy.sparse as sp
import sklearn
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

print("scikit-learn", sklearn.__version__)
generator = np.random.default_rng(0)
values = generator.random(10_000)
matrix = sp.csr_matrix(values.reshape(100, 100))
labels = generator.random(100)
file = io.BytesIO()
dump_svmlight_file(matrix, labels, file)
file.seek(0)
back, back_labels = load_svmlight_file(file, n_features=100)
changed = float(np.mean(back.toarray() != matrix.toarray()))
labels_changed = float(np.mean(back_labels != labels))
other = io.BytesIO()
scipy.io.mmwrite(other, matrix)
other.seek(0)
market = float(np.mean(scipy.io.mmread(other).toarray() != matrix.toarray()))
print(f"svmlight: {changed:.1%} of the values and {labels_changed:.0%} of the labels changed")
print(f"Matrix Market: {market:.1%} of the values changed")
is_so = 0.2 < changed < 0.5 and labels_changed > 0.1 and market == 0
print("As described." if is_so else "CHANGED")
sys.exit(not is_so)
PY
"$folder/venv/bin/python" "$folder/show.py"
