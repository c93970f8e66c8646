#!/usr/bin/env bash
# implicit 0.7.3: a 0 that is stored in the matrix of users and items is not an empty place. ALS takes it out of the loss
# (an empty place is a "not liked" of weight 1), and recommend() never recommends it, as if it were liked.
#
# Two CSR matrices with the same numbers so give other models: items of another taste, which nobody here wants, score 0.8
# instead of 0.0. Such zeros remain from sums and differences of counts, or from a threshold on data. The text of fit()
# tells what positive, negative and empty places mean, not this. The way around: matrix.eliminate_zeros().
# Exit status: 0 if this is still so, 1 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check implicit==0.7.3 scipy==1.17.1 numpy==2.3.5
export OPENBLAS_NUM_THREADS=1
cat >"$folder/show.py" <<'PY'
import sys

import implicit
import numpy as np
import scipy.sparse as sp
from implicit.als import AlternatingLeastSquares

print("implicit", implicit.__version__)
generator = np.random.default_rng(0)
likes = np.zeros((40, 40), np.float32)  # two tastes: each user likes 12 of the 20 items of one
for user in range(40):
    likes[user, user // 20 * 20 + generator.permutation(20)[:12]] = 1
clean = sp.csr_matrix(likes)
every = sp.csr_matrix((likes.ravel(), np.tile(np.arange(40), 40), np.arange(41) * 40), shape=likes.shape)
assert (clean != every).nnz == 0

seen = {}
for name, matrix in {"zeros not stored": clean, "zeros stored": every}.items():
    model = AlternatingLeastSquares(factors=8, iterations=15, num_threads=1, random_state=0)
    model.fit(matrix, show_progress=False)
    scores = model.user_factors @ model.item_factors.T
    found = model.recommend(0, matrix[0], N=5)
    seen[name] = float(scores[likes == 1].mean()), float(scores[:20, 20:].mean()), float(found[1].max())
    print(f"{name:<16} mean score of liked items {seen[name][0]:.2f}, of the other taste {seen[name][1]:.2f},", end="")
    print(f" best score that is recommended {seen[name][2]:.2g}")
clean_scores, every_scores = seen.values()
is_so = abs(clean_scores[1]) < 0.05 and every_scores[1] > 0.5 and clean_scores[2] > 0.3 and every_scores[2] < -1e30
print("As described." if is_so else "CHANGED")
sys.exit(not is_so)
PY
"$folder/venv/bin/python" "$folder/show.py"
