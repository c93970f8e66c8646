#!/usr/bin/env bash
# sparse_dot_topn 1.2.0: sp_matmul_topn(A, B, top_n) returns no negative product, unless top_n is exactly the number of
# columns: then all come, and with sort=True, which should change their order alone, the negative ones are lost again.
#
# threshold, "only return values greater than the threshold", is None by default and is then 0 in one code path and absent in
# the other. Cosines of TF-IDF are positive; those of signed rows (HashingVectorizer, SVD, centred ratings) are not, and rows
# come back with fewer than top_n entries or none. The way around: threshold=-inf.
# Exit status: 0 if this is still so, 1 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check sparse-dot-topn==1.2.0 scipy==1.17.1 numpy==2.3.5
cat >"$folder/show.py" <<'PY'
import importlib.metadata
import sys

import numpy as np
import scipy.sparse as sp
from sparse_dot_topn import sp_matmul_topn

print("sparse_dot_topn", importlib.metadata.version("sparse_dot_topn"))
generator = np.random.default_rng(0)
left = sp.csr_matrix(np.where(generator.random((50, 40)) < 0.4, generator.normal(size=(50, 40)), 0))
right = sp.csr_matrix(np.where(generator.random((40, 30)) < 0.4, generator.normal(size=(40, 30)), 0))
product = (left @ right).toarray()
negative = int(np.sum(product < 0))
print(f"A @ B has 30 columns, {np.sum(product > 0)} positive and {negative} negative entries")
seen = {}
for top_n in (29, 30, 31):
    for options in ({}, {"sort": True}, {"threshold": -np.inf}):
        found = sp_matmul_topn(left, right, top_n=top_n, **options)
        seen[top_n, *options] = int(np.sum(found.data < 0))
        print(f"top_n={top_n} {options!s:<20} {found.nnz} entries, {seen[top_n, *options]} of them negative")
empty = sp_matmul_topn(-abs(left), abs(right), top_n=3).nnz
print(f"the top 3 of rows in which all products are negative: {empty} entries")
is_so = [seen[top_n,] for top_n in (29, 30, 31)] == [0, negative, 0] and seen[30, "sort"] == 0 == empty
is_so &= seen[30, "threshold"] == seen[31, "threshold"] == negative and seen[29, "threshold"] > 0
print("As described." if is_so else "CHANGED")
sys.exit(not is_so)
PY
"$folder/venv/bin/python" "$folder/show.py"
