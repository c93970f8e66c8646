"""Tables of two bytes a value on the emulated device: how they are widened, and what is refused."""

import numpy as np
import pytest
from cases import CASES
from gpu_twins import from_brain, run_on

import kernels
from kernels import KernelError
from kernels.gpu import narrow

emulator_build = pytest.importorskip("emulator.build")
if emulator_build.compiler() is None:
    pytest.skip("g++, which compiles the CUDA sources for the host, is not installed", allow_module_level=True)

from emulator.device import emulator  # noqa: E402


@pytest.mark.parametrize("kind", ["float16", "uint16"])
def test_every_pattern_of_two_bytes_is_widened_exactly(kind: str) -> None:
    """Zeros of both signs, numbers below the normal ones, infinities and NaN among them."""
    table, rows = np.arange(2**16, dtype=np.uint16).reshape(2048, 32), np.arange(2049, dtype=np.int32)
    wide = from_brain(table) if kind == "uint16" else table.view(np.float16).astype(np.float32)
    given = rows, rows[:-1].copy(), np.ones(2048, np.float32), table.view(kind), np.empty((2048, 32), np.float32)
    came = run_on(emulator, narrow.csr_dense, given)[-1]
    np.testing.assert_array_equal(came, wide)


def test_narrow_product_refuses_what_does_not_fit() -> None:
    indptr, indices, data, x, out = kernels.get("csr_dense").arguments(CASES["plain"])
    right = indptr, indices, data, x.astype(np.float16), out
    for place, wrong, words in (
        (3, x, "float32, float32, float32; allowed are float32, float16 or uint16"),
        (2, data.astype(np.float64), "are float64, float16, float32; allowed"),
        (0, indptr.astype(np.int64), "indptr is int64, indices is int32; allowed are int32 or int64, both the same"),
        (4, out[1:], r"out \[6, 3\] do not fit"),
        (1, indices[1:], r"indices \[19\], data \[20\]"),
    ):
        with pytest.raises(KernelError, match=words):
            narrow.csr_dense(*map(emulator.put, (*right[:place], wrong, *right[place + 1 :])))
