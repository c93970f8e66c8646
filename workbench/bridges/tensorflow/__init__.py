"""TensorFlow: sparse rows as SparseTensor, data for `tf.data`, a product whose gradient stays row-sparse.

A loop of logistic regression on sparse rows; `workbench.bridges.keras` has the layer for `model.fit`.

>>> import tensorflow as tf
>>> from workbench import data
>>> from workbench.bridges.tensorflow import batches, sparse_product
>>> train = data.load("uniform", rows=400, features=60, density=0.1, cache=False)
>>> w, losses = tf.Variable(tf.zeros([train.features, 1])), []
>>> for rows, labels in batches(train, rows=50, shuffle=True):
...     with tf.GradientTape() as tape:
...         scores = sparse_product(rows, w)[:, 0]
...         labels = tf.cast(labels, tf.float32)
...         loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels, scores))
...     gradient = tape.gradient(loss, w)
...     _ = w.scatter_sub(tf.IndexedSlices(0.5 * gradient.values, gradient.indices))
...     losses.append(float(loss))
>>> type(gradient).__name__, losses[-1] < losses[0]
('IndexedSlices', True)

`to_sparse_tensor` and `from_sparse_tensor` hand matrices over and check what TensorFlow would take without a word.
`batches` are those of a `data.Feed` or `data.Dataset`, converted once a batch; `examples` are single rows that
`tf.data` batches itself. `summed` gives IndexedSlices each row once, which Keras' optimizers take for granted, and
`require_row_sparse` refuses gradients that became dense on their way to the optimizer. `hashed` folds columns.
"""

from workbench.bridges.tensorflow.tensors import (
    batches,
    examples,
    from_sparse_tensor,
    hashed,
    require_row_sparse,
    sparse_product,
    summed,
    to_sparse_tensor,
)

__all__ = [
    "batches",
    "examples",
    "from_sparse_tensor",
    "hashed",
    "require_row_sparse",
    "sparse_product",
    "summed",
    "to_sparse_tensor",
]
