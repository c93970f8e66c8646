"""The setting `hold`: rows as they are held in memory while they are trained on.

>>> import numpy as np
>>> x = np.float32([[0, 2], [0, 0]])
>>> convert_storage("csr", x).nnz, convert_storage("uint8", x).nbytes
(1, 4)
"""

from typing import Any

import numpy as np

from workbench import data, formats
from workbench.formats import arrays

NARROW = ("uint8", "float16")
"""Values of `hold` that name a type of values."""


def convert_storage(hold: str, x: Any) -> Any:
    """Return the rows X as `hold` says, X itself for format; `FormatError` for a value that the smaller type has not.

    Stored rows are read as they are trained on and are never held: they stay what they are, and come in no smaller
    type (`DataError`).
    """
    if hold == "format" or (hold == "csr" and isinstance(x, data.StoredRows)):
        return x
    if hold == "csr":
        return formats.to_format(x, "csr")
    if isinstance(x, data.StoredRows):
        raise data.DataError(
            f"{x.place} is read as it is trained on, and hold {hold} needs it in memory: take hold format, or load it "
            "with whole=True (reading: whole=true)."
        )
    return arrays.narrowed(x, np.dtype(hold))
