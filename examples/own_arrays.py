"""Train SparseClassifier and scikit-learn's LogisticRegression on the same SciPy matrix; print seconds and accuracy.

python examples/own_arrays.py [X.npz y.npy], from scipy.sparse.save_npz and numpy.save; without files data is generated.
"""

import sys
import time

import numpy as np
import scipy.sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

import workbench as wb

if len(sys.argv) > 2:
    X, y = scipy.sparse.load_npz(sys.argv[1]), np.load(sys.argv[2])
else:
    rng = np.random.default_rng(0)
    X = scipy.sparse.random_array((20_000, 5_000), density=0.005, format="csr", dtype=np.float32, rng=rng)
    y = np.where(X @ rng.normal(size=X.shape[1]) + 0.5 * rng.normal(size=X.shape[0]) > 0, "yes", "no")

X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=0)
print(f"{X.shape[0]} rows x {X.shape[1]} columns, density {X.nnz / np.prod(X.shape):.2%}")

models = {"SparseClassifier": wb.SparseClassifier(random_state=0), "LogisticRegression": LogisticRegression()}
for name, model in models.items():
    model.fit(X_train, y_train)  # not timed: the first call loads libraries and compiled code
    start = time.perf_counter()
    model.fit(X_train, y_train)
    seconds = time.perf_counter() - start
    print(f"{name}: {seconds:.3f} s, accuracy on held-out rows {model.score(X_test, y_test):.3f}")
