"""A small model with a batch of its data, bound: what the tests of the executor share."""

import numpy as np
import scipy.sparse

from tests.support.toy_losses import joint_loss
from workbench import executor, graph, ops


def batch(rows=6, seed=0, dtype=np.float32, index=np.int32):
    """CSR [rows, 20] with an empty row, and labels of three classes."""
    random = np.random.default_rng(seed)
    dense = random.random((rows, 20)) * (random.random((rows, 20)) < 0.2)
    dense[rows // 2 : rows // 2 + 1] = 0
    x = scipy.sparse.csr_array(dense.astype(dtype))
    x.indices, x.indptr = x.indices.astype(index), x.indptr.astype(index)
    return x, random.integers(0, 3, rows)


def model(loss=joint_loss, dtype="float32"):
    x = graph.variable("x", "csr", (None, 20), dtype)
    w = graph.variable("w", shape=(20, 3), dtype=dtype)
    return loss(ops.dot(x, w, name="scores"), graph.variable("y", shape=(None,), dtype="int64"), name="loss")


def bound(rows=6, **options):
    x, y = batch(rows)
    options.setdefault("grad_req", {"w": "write"})
    made = executor.bind(model(options.pop("loss", joint_loss)), {"x": x, "y": y}, **options)
    made.args["w"][:] = np.random.default_rng(5).standard_normal((20, 3))
    return made


def expected_gradient(x, y, w):
    scores = x.toarray().astype(np.float64) @ w
    p = np.exp(scores - scores.max(axis=1, keepdims=True, initial=-np.inf))
    p /= p.sum(axis=1, keepdims=True)
    p[np.arange(len(y)), y] -= 1
    return x.toarray().T.astype(np.float64) @ p / max(len(y), 1)
