"""Further candidates of ours for CSR @ dense on a CUDA device: rows whose lengths are known, and narrow tables."""

import functools
from time import perf_counter
from typing import Any

import numpy as np

import kernels
from kernels import Cost, Sizes
from kernels.devices import Device
from kernels.gpu import narrow, rounding
from kernels.gpu.plan import lengths_of
from kernels.products.csr_dense import on_device
from workbench.bench.candidates import Candidate, Ready, Setting, Traffic, make_judge, operand_bytes, require_device

TABLES = {"float16": "float16", "bfloat16": "uint16"}
"""Types of two bytes a value, and what holds them in NumPy and CuPy."""

_PRODUCT = kernels.get("csr_dense")
_NEEDED = functools.partial(operand_bytes, _PRODUCT)


def list_variants(on: Device | None) -> list[Candidate]:
    """Return all of them; `on` is None if only their names are asked for."""
    known = Candidate("csr_dense, lengths known", "ours", functools.partial(_lengths_known, on), _NEEDED)
    tables = [
        Candidate(f"csr_dense, {name} x", "ours", functools.partial(_narrow, on, name), _NEEDED) for name in TABLES
    ]
    return [known, *tables]


def _lengths_known(on: Device | None, setting: Setting) -> Ready:
    """Return product whose lengths of rows are found once, rows in order of their entries where some are much
    longer."""
    on, args = require_device(on), setting.arguments(_PRODUCT)
    judged, there = make_judge(_PRODUCT, args), [on.put(arg) for arg in args]
    start = perf_counter()
    lengths = lengths_of(there[0], in_order_of_length=True)
    once = perf_counter() - start
    call = functools.partial(on_device, *[*there, lengths])
    return Ready(call, _judge(on, judged, args, there), _PRODUCT.cost(setting.sizes), _traffic(setting), once)


def _narrow(on: Device | None, name: str, setting: Setting) -> Ready:
    """Judged by the values that the table has; what rounding it takes away from x is not looked at."""
    on = require_device(on)
    *matrix, x, out = args = setting.arguments(_PRODUCT)
    table = on.empty(x.shape, TABLES[name])
    rounding.rounded(on.put(x), table)
    judged, there = make_judge(_PRODUCT, (*matrix, _widened(on.read(table)), out)), [on.put(arg) for arg in args]
    there[-2] = table
    call = functools.partial(narrow.csr_dense, *there)
    return Ready(call, _judge(on, judged, args, there), _cost(setting.sizes), _traffic(setting, table.dtype.itemsize))


def _widened(table: np.ndarray) -> np.ndarray:
    """Return float16, or bfloat16 held as uint16, as float32."""
    if table.dtype == np.float16:
        return table.astype(np.float32)
    return (table.astype(np.uint32) << 16).view(np.float32)


def _judge(on: Device, judged: Any, args: tuple, there: list) -> Any:
    """Return a judge that copies the device's result to the host first."""

    def judge_on_host(_: Any) -> float:
        args[-1][...] = on.read(there[-1])  # synchronize!
        return judged(None)

    return judge_on_host


def _cost(sizes: Sizes) -> Cost:
    """Return the cost of the product, with rows of x of half the bytes."""
    whole = _PRODUCT.cost(sizes)
    rows = sizes.U * sizes.N * sizes.value
    return Cost(whole.flops, whole.bytes_compulsory - rows // 2, whole.bytes_gather // 2)


def _traffic(setting: Setting, value: int = 0) -> Traffic:
    """Return the memory traffic of reading a table row; `value` is the bytes of a value."""
    return Traffic(bytes_row=setting.sizes.N * (value or setting.sizes.value))
