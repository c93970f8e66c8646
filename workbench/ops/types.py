"""Types that the element-wise operators take; all have the result in the type of their inputs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from workbench.ops.contract import OpError

REAL = tuple(map(np.dtype, (np.float32, np.float64, np.float16)))


def one_type(dtypes: Sequence[np.dtype], params: Mapping[str, Any]) -> np.dtype:
    """The type that all inputs have (`OpError`)."""
    first = dtypes[0]
    for dtype in dtypes:
        if dtype != first:
            raise OpError(
                f"The types differ: {', '.join(map(str, dtypes))}. They must be the same; convert with astype."
            )
    return first


def real(dtypes: Sequence[np.dtype], params: Mapping[str, Any]) -> np.dtype:
    """The one type, which must be a floating one: other values would not fit in it (`OpError`)."""
    dtype = one_type(dtypes, params)
    if dtype not in REAL:
        raise OpError(f"An array of {dtype} came; allowed are {', '.join(map(str, REAL))}. Convert with astype.")
    return dtype
