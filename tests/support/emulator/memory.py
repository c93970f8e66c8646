"""Arrays of the emulated device: in pages of their own, with pages that must not be touched on both sides."""

import ctypes
import mmap
import weakref
from collections.abc import Callable, Sequence

import numpy as np

PAGE = mmap.PAGESIZE
POISON = 0xFF
"""Bytes of memory that nobody has written: NaN in floats, -1 in integers."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class Region:
    """Memory of `nbytes` that ends where a forbidden page starts; the bytes before it, up to a page, are canaries."""

    def __init__(self, nbytes: int) -> None:
        self.pages = -(-nbytes // PAGE) * PAGE
        self.nbytes, self.mapped = nbytes, self.pages + 2 * PAGE
        self.base = _libc.mmap(None, self.mapped, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        if self.base in (None, ctypes.c_void_p(-1).value):
            raise MemoryError(f"mmap of {self.mapped} bytes for the emulator: error {ctypes.get_errno()}")
        self.end = self.base + PAGE + self.pages
        self.start = self.end - nbytes
        if self.pages:
            _libc.mprotect(self.base + PAGE, self.pages, mmap.PROT_READ | mmap.PROT_WRITE)
            ctypes.memset(self.base + PAGE, POISON, self.pages)
        self.canaries = self.pages - nbytes
        self.used: Callable[[], None] = lambda: None  # called before each kernel that is given an array in it
        weakref.finalize(self, _libc.munmap, self.base, self.mapped)

    def is_whole(self) -> bool:
        """Whether nothing was written before the start."""
        return ctypes.string_at(self.base + PAGE, self.canaries) == bytes([POISON]) * self.canaries

    def holds(self, address: int) -> bool:
        """Whether `address` is in the pages of this region, the forbidden ones included."""
        return self.base <= address < self.base + self.mapped


class Array:
    """What a launcher may do with a device's array: no more than CuPy's arrays can do without a copy to the host."""

    def __init__(self, host: np.ndarray, region: Region) -> None:
        self.host, self.region = host, region
        self.shape, self.dtype, self.size, self.ndim = host.shape, host.dtype, host.size, host.ndim
        self.itemsize, self.nbytes = host.itemsize, host.nbytes

    @property
    def address(self) -> int:
        """Where it starts."""
        return self.host.ctypes.data if self.size else self.region.end

    def __getitem__(self, part: slice) -> "Array":
        if not isinstance(part, slice) or part.step is not None:
            raise TypeError("The emulated device's arrays are cut along the first axis; anything else is for the host.")
        return Array(self.host[part], self.region)

    def reshape(self, *shape: int) -> "Array":
        """The same elements in another shape."""
        return Array(self.host.reshape(*shape), self.region)

    def astype(self, dtype: object) -> "Array":
        """A copy of another type."""
        made = new_array(self.shape, dtype)
        made.host[...] = self.host
        return made


def new_array(shape: int | Sequence[int], dtype: object) -> Array:
    """An array with poison in it."""
    dtype = np.dtype(dtype)
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    size = int(np.prod(shape, dtype=np.int64))
    region = Region(size * dtype.itemsize)
    if not size:
        return Array(np.empty(shape, dtype), region)
    buffer = (ctypes.c_char * region.nbytes).from_address(region.start)
    buffer.region = region  # keeps it while any view of the array lives
    return Array(np.frombuffer(buffer, dtype).reshape(shape), region)
