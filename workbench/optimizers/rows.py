"""Numbers of rows that are held, and how others come to them."""

import numpy as np


def united(indices: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The numbers of both, each sorted and unique; `indices` itself where it has all. O(n), rows searched for."""
    if not rows.size or not indices.size:
        return rows.copy() if rows.size else indices
    places = np.searchsorted(indices, rows)
    is_new = indices[np.minimum(places, indices.size - 1)] != rows
    return np.insert(indices, places[is_new], rows[is_new]) if is_new.any() else indices
