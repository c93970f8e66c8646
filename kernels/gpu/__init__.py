"""Shared code of CUDA launchers: sources, launch shapes, row sums, sorts and scans of indices.

The CUDA code is in `.cu` files next to the kernels' `.py` files and in `.cuh` headers here; inline PTX is in
`device.cuh` only. Floats are added in a fixed order, without atomics: a result has the same bits on every run, and
differs from that of the CPU in the last ones. A launcher uses a `devices.Device`, which is CuPy's or, in tests, an
emulator on the host.
"""
