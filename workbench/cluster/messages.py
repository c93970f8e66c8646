"""Messages between trainers and shards: a kind, plain values and arrays. As bytes they are JSON and the arrays' memory.

Trainers ask: `hello`, `init`, `optimizer`, `push`, `squares`, `pull`, `catch_up`, `state`, `save`, `load`. Shards
answer with `done`; `wait`, where the same message may be answered later; `stale`, where it is of a step or a generation
that is over; `error`. The three latter say why in `about["text"]`.
"""

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from workbench.formats import RowSparse
from workbench.json_text import is_whole, parsed
from workbench.kvstore import Key, StoreError

NAMES = ("float16", "float32", "float64", "int32", "int64", "uint8", "uint32")
DTYPES = {name: np.dtype(name) for name in NAMES}
"""The types that arrays of messages have, by name."""

MOST_AXES = 32


@final
@dataclass(frozen=True, eq=False)
class Message:
    """`about` holds what JSON can, `arrays` the numbers.

    >>> sent = Message("pull", {"step": 3}, [np.arange(2)])
    >>> came = Message.from_frames(sent.frames())
    >>> came.kind, came.about, came.arrays, came.nbytes
    ('pull', {'step': 3}, [array([0, 1])], 51)
    """

    kind: str
    about: dict[str, Any] = field(default_factory=dict)
    arrays: Sequence[np.ndarray] = ()

    def frames(self) -> list[bytes]:
        """Return the bytes to send: the JSON header, then the memory of each array in C order."""
        return [self._header, *(array.tobytes() for array in self.arrays)]

    @functools.cached_property
    def _header(self) -> bytes:
        """Kind, `about` and [dtype, shape] of each array as JSON bytes; computed once."""
        arrays = [[array.dtype.name, array.shape] for array in self.arrays]
        return json.dumps([self.kind, self.about, arrays], separators=(",", ":")).encode()

    @property
    def nbytes(self) -> int:
        """Bytes of the message on the wire: its header and its arrays."""
        return len(self._header) + sum(array.nbytes for array in self.arrays)

    @classmethod
    def from_frames(cls, frames: Sequence[bytes | bytearray | memoryview]) -> "Message":
        """Return the message that `frames` gave these bytes of, with arrays copied; StoreError for other bytes."""
        try:
            kind, about, facts = parsed(bytes(frames[0]))
            shapes = [(DTYPES[name], tuple(shape)) for name, shape in facts]
        except (ValueError, TypeError, LookupError):
            raise StoreError("Invalid message: the first frame is not a workbench header.") from None
        sound = isinstance(kind, str) and isinstance(about, dict) and len(shapes) == len(frames) - 1
        if not sound or not all(_is_shape(shape) for _, shape in shapes):
            raise StoreError(f"Invalid message: its {len(frames)} frames are not the arrays that its header lists.")
        arrays = [_array(frame, *shape) for frame, shape in zip(frames[1:], shapes, strict=True)]
        return cls(kind, about, arrays)


def _is_shape(shape: tuple[Any, ...]) -> bool:
    """Return whether a tuple from JSON is an array shape: up to `MOST_AXES` whole numbers from 0."""
    return len(shape) <= MOST_AXES and all(is_whole(length) for length in shape)


def _array(frame: bytes | bytearray | memoryview, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Return a writable copy of the frame's bytes as an array; StoreError if their number does not fit `shape`."""
    try:
        return np.frombuffer(frame, dtype).reshape(shape).copy()
    except ValueError:
        raise StoreError(f"A message has {memoryview(frame).nbytes} bytes for an array {dtype} {shape}.") from None


def pack_values(values: Mapping[Any, Any]) -> tuple[list[list], list[np.ndarray]]:
    """Return ([key, "dense" or "row_sparse"] of each value, arrays), to be sent in a message.

    A dense value gives one array, a RowSparse two: row indices (uint32 or int64) and stored rows. Nothing is copied but
    indices.
    """
    names: list[list] = []
    arrays: list[np.ndarray] = []
    for key, value in values.items():
        if isinstance(value, RowSparse):
            names.append([key, "row_sparse"])
            arrays += [narrow_indices(value.indices, value.shape[0]), value.values]
        else:
            names.append([key, "dense"])
            arrays.append(value)
    return names, arrays


def unpack_values(
    names: Sequence[Sequence], arrays: Sequence[np.ndarray], shapes: Mapping[Key, tuple[int, ...]]
) -> dict[Key, np.ndarray | RowSparse]:
    """Return {key: array or RowSparse} from what `pack_values` gave; `shapes` has those of the RowSparse values.

    Row indices become int64. StoreError if there are too few arrays; ValueError if rows do not fit.
    """
    rest, values = list(arrays), dict[Key, Any]()
    try:
        for key, format in names:
            if format == "row_sparse":
                rows, stored = rest.pop(0), rest.pop(0)
                values[key] = RowSparse(stored, rows.astype(np.int64), tuple(shapes[key]))
            else:
                values[key] = rest.pop(0)
    except LookupError:
        raise StoreError(f"A message names {list(names)} and has {len(arrays)} arrays, which is too few.") from None
    return values


def narrow_indices(rows: np.ndarray, count: int) -> np.ndarray:
    """Return a copy of row indices below `count` as uint32 if they fit, else int64."""
    return rows.astype(np.uint32 if count <= 2**32 else np.int64)
