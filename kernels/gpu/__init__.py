"""Shared parts of the launchers of GPU twins: CUDA sources, launch shapes, row sums, sorts and scans of indices.

The CUDA code is in `.cu` files beside the kernels' `.py` files and in `.cuh` headers here; inline PTX is in
`device.cuh` alone. Floats are added in one order, without atomics: a result has the same bits on every run, and differs
from that of the CPU in the last ones. A launcher speaks to a `devices.Device`, which is CuPy's or, in tests, a host
emulator's.
"""
