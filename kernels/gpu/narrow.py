"""Products with tables of two bytes a value, which halve the memory and the traffic; everything is added in float32."""

from typing import Any

from kernels import devices
from kernels.contract import KernelError
from kernels.gpu.row_sums import row_sums, tiles
from kernels.gpu.source import source

NARROW = {"float16": "Half", "uint16": "Brain"}
"""What CUDA sources call the type of a table; uint16 holds bfloat16, which NumPy and CuPy do not know."""

_CUDA = source(
    __file__, [f"csr_dense_narrow<{tile.name('float')}, {kind}>" for kind in NARROW.values() for tile in tiles("float")]
)


def csr_dense(indptr: Any, indices: Any, data: Any, x: Any, out: Any) -> None:
    """out [R, N] = A @ x, A in CSR form with float32 `data`, `x` [D, N] float16, or bfloat16 as uint16; out float32.

    Arrays of a device, C-contiguous. Raises `KernelError` for other types and for shapes that do not fit.
    """
    kinds = data.dtype.name, x.dtype.name, out.dtype.name
    if kinds[0] != "float32" or kinds[1] not in NARROW or kinds[2] != "float32":
        raise KernelError(
            f"data, x and out are {', '.join(kinds)}; allowed are float32, {' or '.join(NARROW)} (bfloat16), float32."
        )
    if indptr.dtype != indices.dtype or indptr.dtype.name not in ("int32", "int64"):
        raise KernelError(
            f"indptr is {indptr.dtype}, indices is {indices.dtype}; allowed are int32 or int64, both the same."
        )
    if out.shape != (indptr.size - 1, x.shape[1]) or indices.size != data.size:
        raise KernelError(
            f"indptr [{indptr.size}], indices [{indices.size}], data [{data.size}], x {list(x.shape)} and out "
            f"{list(out.shape)} do not fit: out has a row less than indptr has elements, and the columns of x."
        )
    device = devices.of(out)
    indptr, indices, data, x = map(device.contiguous, (indptr, indices, data, x))
    row_sums(_CUDA, "csr_dense_narrow", indptr, (indices, data), x, out, table_type=NARROW[kinds[1]])
