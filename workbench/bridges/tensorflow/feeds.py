"""Data for `tf.data`: the batches of a feed, converted once a batch, and single rows."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from workbench import data
from workbench.bridges.feeds import Source, feed_of
from workbench.bridges.tensorflow.library import tf
from workbench.bridges.tensorflow.tensors import to_sparse_tensor


def batches(
    source: Source,
    *,
    rows: int = 256,
    shuffle: bool = False,
    seed: int = 0,
    last: str = "keep",
    first_epoch: int = 0,
) -> tf.data.Dataset:
    """Return the batches of a `data.Feed` as (SparseTensor [R, D], labels); of a `data.Dataset` they are cut here.

    So they are of a path: that of a file, read as `data.guess` says, or of a folder `X.sparse`, which is read as it is
    trained on and may be larger than memory. Each pass over the result is the next epoch, from `first_epoch` on; what
    comes follows from the feed and the number of the epoch alone. Width and types are known to the graph, so that Keras
    builds on them; the number of batches is known where all epochs have as many. Labels are as in the feed, absent
    where it has none.
    """
    feed = feed_of(source, "batches", rows=rows, shuffle=shuffle, seed=seed, last=last)
    begun = iter(range(first_epoch, 2**62))
    first = next(feed.epoch(first_epoch))
    width, is_labelled = first.x.shape[1], bool(first.labels)

    def generate() -> Iterator[Any]:
        for batch in feed.epoch(next(begun)):
            x = to_sparse_tensor(batch.x, width=width)
            yield (x, batch.y) if is_labelled else x

    found = tf.data.Dataset.from_generator(generate, output_signature=_signature(first, width))
    is_even = feed.count(first_epoch) == feed.count(first_epoch + 1)
    return found.apply(tf.data.experimental.assert_cardinality(feed.count(first_epoch))) if is_even else found


def _signature(batch: data.Batch, width: int) -> Any:
    """Return the types and shapes of a batch, of any number of rows."""
    rows = tf.SparseTensorSpec((None, width), batch.x.dtype)
    if not batch.labels:
        return rows
    if not isinstance(batch.y, np.ndarray):
        raise data.DataError("The labels of this feed are sparse; give dense ones: y.toarray().")
    return rows, tf.TensorSpec((None, *batch.y.shape[1:]), batch.y.dtype)


def examples(x: Any, y: Any = None) -> tf.data.Dataset:
    """Single rows of a matrix as SparseTensors [D], with their labels: what `shuffle` and `batch` of `tf.data` take.

    Batched they are SparseTensors [R, D]; nothing is made dense. All of x is converted at once: for data that is large
    use `batches`, which is faster too.
    """
    rows = to_sparse_tensor(x)
    if y is not None and len(y) != rows.shape[0]:
        raise data.DataError(f"y has {len(y)} entries for {rows.shape[0]} rows of x; it needs one for each.")
    return tf.data.Dataset.from_tensor_slices(rows if y is None else (rows, y))
