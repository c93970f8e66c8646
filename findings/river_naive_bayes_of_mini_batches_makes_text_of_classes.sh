#!/usr/bin/env bash
# river 0.26.1: naive Bayes that learns classes 0 and 1 from mini-batches predicts '0' and '1': its accuracy is 0. The same
# rows one by one are predicted as 0 and 1. No error and no warning comes.
#
# learn_many of MultinomialNB, ComplementNB and BernoulliNB makes columns of the classes and keeps their names. Classes
# that are text are right; numbers and True and False are never equal to a prediction, in metrics neither. A model that
# learns both ways has each class twice, and shares its probability between both.
# Exit status: 0 if this is still so, 1 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check river==0.26.1 pandas==3.1.1
cat >"$folder/show.py" <<'PY'
import sys
import warnings

import numpy as np
import pandas as pd
import river
import scipy.sparse as sp
from river import metrics, naive_bayes

print("river", river.__version__)
warnings.simplefilter("error")
generator = np.random.default_rng(0)
words = list("abcdef")
numbers = np.arange(200) % 2
counts = np.array([generator.multinomial(5, [0.3, 0.3, 0.1, 0.1, 0.1, 0.1][:: 1 if n else -1]) for n in numbers])
rows = pd.DataFrame.sparse.from_spmatrix(sp.csr_array(counts), columns=words).astype(pd.SparseDtype("uint8", 0))


def accuracy(predicted, classes):
    """Return river's accuracy."""
    metric = metrics.Accuracy()
    for one, right in zip(predicted, classes):
        metric.update(right, one)
    return metric.get()


is_so = True
for name in ("MultinomialNB", "ComplementNB", "BernoulliNB"):
    for kind in (str, int, bool):
        classes = [kind(number) for number in numbers]
        single, batch = (getattr(naive_bayes, name)() for _ in range(2))
        for row, right in zip(counts.tolist(), classes):
            single.learn_one(dict(zip(words, row)), right)
        batch.learn_many(rows, pd.Series(classes))
        by_one = accuracy([single.predict_one(dict(zip(words, row))) for row in counts.tolist()], classes)
        predicted = batch.predict_many(rows)
        by_many = accuracy(predicted, classes)
        print(f"{name:<13} of {kind.__name__:<4}: one by one {by_one:.2f}, batches {by_many:.2f}, such as {predicted[0]!r}")
        is_so &= by_one > 0.7 and (by_many > 0.7 if kind is str else by_many == 0 and isinstance(predicted[0], str))
print("As described." if is_so else "CHANGED")
sys.exit(not is_so)
PY
"$folder/venv/bin/python" "$folder/show.py"
