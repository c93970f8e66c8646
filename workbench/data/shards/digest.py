"""A hash of the rows of a data set, by which it is known again however it is cut, shuffled or stored."""

import hashlib
from typing import Any, final

import numpy as np


@final
class Digest:
    """A hash of rows as they come, the same however they are cut into blocks."""

    def __init__(self) -> None:
        self.parts = {name: hashlib.sha256() for name in ("lengths", "indices", "data", "labels")}

    def add(self, x: Any, labels: np.ndarray) -> None:
        """Add rows, csr [R, features], and their labels [R] or [R, N]."""
        texts = "\0".join(map(str, labels.tolist())) + "\0" if labels.dtype.kind in "US" else None
        arrays: dict[str, Any] = {
            "lengths": np.diff(x.indptr).astype("<i8"),
            "indices": x.indices.astype("<i8", copy=False),
            "data": x.data,
            "labels": labels if texts is None else texts.encode("utf-8", "surrogatepass"),
        }
        for name, array in arrays.items():
            self.parts[name].update(array if isinstance(array, bytes) else np.ascontiguousarray(array).data)

    def text(self) -> str:
        """The hash of all, in hexadecimal digits."""
        return hashlib.sha256("".join(part.hexdigest() for part in self.parts.values()).encode()).hexdigest()
