"""implicit: neighbours of items; it has no dense form, so NumPy does the same densely."""

import numpy as np

from benchmarks.libraries import Calls, Data, Operation

OPERATIONS: list[Operation] = []

NEAREST = 10


def neighbours(data: Data) -> Calls:
    """Return the sum of the largest dot products of each item with all items, by users x items."""
    from implicit.nearest_neighbours import all_pairs_knn

    x = data.csr.astype(np.float64)
    dense = x.toarray()

    def full() -> np.ndarray:
        """Return the sums by a dense product."""
        return np.partition(dense.T @ dense, -NEAREST, axis=1)[:, -NEAREST:].sum(axis=1)

    return lambda: np.ravel(
        all_pairs_knn(x, NEAREST, show_progress=False, num_threads=data.threads).tocsr().sum(axis=1)
    ), full


OPERATIONS.append(
    Operation("implicit", "10 nearest items", neighbours, "implicit", 1e-3, note="dense is NumPy: implicit has none")
)
