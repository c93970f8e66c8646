"""dtypes that the elementwise operators take; results have the dtype of the inputs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from workbench.ops.contract import OpError

REAL = tuple(map(np.dtype, (np.float32, np.float64, np.float16)))


def one_type(dtypes: Sequence[np.dtype], params: Mapping[str, Any]) -> np.dtype:
    """Return the dtype of all inputs. Raises OpError if they differ."""
    first = dtypes[0]
    for dtype in dtypes:
        if dtype != first:
            raise OpError(
                f"The types differ: {', '.join(map(str, dtypes))}. They must be the same; convert with astype."
            )
    return first


def real(dtypes: Sequence[np.dtype], params: Mapping[str, Any]) -> np.dtype:
    """Return the dtype of all inputs. Raises OpError unless it is a floating-point one, which can hold the result."""
    dtype = one_type(dtypes, params)
    if dtype not in REAL:
        raise OpError(f"An array of {dtype} came; allowed are {', '.join(map(str, REAL))}. Convert with astype.")
    return dtype
