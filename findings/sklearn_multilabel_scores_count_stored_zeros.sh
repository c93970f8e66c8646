#!/usr/bin/env bash
# scikit-learn 1.9.1: precision, recall, F1, Jaccard and the confusion matrix of multilabel predictions in CSR form take
# every stored entry for a 1, also a stored 0; there can be -7 true negatives. accuracy_score and hamming_loss do not.
#
# A threshold on a CSR matrix of scores, "labels.data = labels.data > 0.5", leaves such zeros: it is the same matrix,
# and scikit-learn accepts it as a multilabel indicator (values 0 and 1). The same labels as a dense array, or after
# eliminate_zeros(), give the right numbers. The documentation of the scores does not say so.
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
from sklearn import metrics

print("scikit-learn", sklearn.__version__)
generator = np.random.default_rng(0)
truth = sp.csr_array((generator.random((50, 6)) < 0.4).astype(int))
labels = sp.csr_array(generator.random((50, 6)))
labels.data = (labels.data > 0.5).astype(int)  # the scores, cut at 0.5: 0 stays stored
clean = labels.copy()
clean.eliminate_zeros()
assert (labels != clean).nnz == 0 and clean.nnz < labels.nnz

seen = {}
for name in ("precision_score", "recall_score", "f1_score", "jaccard_score", "accuracy_score", "hamming_loss"):
    score = getattr(metrics, name)
    options = {"average": "micro"} if name not in ("accuracy_score", "hamming_loss") else {}
    seen[name] = [round(float(score(truth, form, **options)), 4) for form in (labels, clean)]
    seen[name].append(round(float(score(truth.toarray(), labels.toarray(), **options)), 4))
    print(f"{name:<16} zeros stored {seen[name][0]}, zeros removed {seen[name][1]}, dense {seen[name][2]}")
table = metrics.multilabel_confusion_matrix(truth, labels)[0]
right = metrics.multilabel_confusion_matrix(truth, clean)[0]
print(f"true negatives of the first label: zeros stored {table[0, 0]}, zeros removed {right[0, 0]}")

is_so = all(values[1] == values[2] for values in seen.values()) and table[0, 0] < 0 < right[0, 0]
is_so &= all(seen[name][0] < 0.7 * seen[name][1] for name in ("precision_score", "f1_score", "jaccard_score"))
is_so &= all(seen[name][0] == seen[name][1] for name in ("accuracy_score", "hamming_loss"))
print("As described." if is_so else "CHANGED")
sys.exit(not is_so)
PY
"$folder/venv/bin/python" "$folder/show.py"
