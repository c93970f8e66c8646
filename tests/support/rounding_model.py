"""How values of two bytes come from float32, computed with powers of two in float64 and nothing of the CUDA sources."""

import numpy as np

DIGITS, LOWEST, TOO_LARGE = ({"float16": a, "uint16": b} for a, b in ((11, 8), (-24, -133), (2.0**16, 2.0**128)))
"""Of IEEE's type and of bfloat16: binary digits, exponent of the smallest number, first power of two with no number."""


def from_brain(bits: np.ndarray) -> np.ndarray:
    """float32 values of bfloat16 as uint16."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def widened(table: np.ndarray) -> np.ndarray:
    """float32 values of a table."""
    return from_brain(table) if table.dtype == np.uint16 else table.astype(np.float32)


def rounded(values: np.ndarray, kind: str, numbers: np.ndarray | None = None) -> np.ndarray:
    """To the nearest, of two to the even one; with `numbers` up where these and what is left out come to 2**32."""
    size = np.abs(np.where(np.isfinite(values), values, 0).astype(np.float64))
    unit = np.ldexp(1.0, np.maximum(np.frexp(size)[1] - DIGITS[kind], LOWEST[kind]))
    whole = np.rint(size / unit)
    if numbers is not None:
        whole = np.floor(size / unit)
        whole += np.floor((size / unit - whole) * 2.0**32) + numbers >= 2.0**32
    size = np.where(whole * unit < TOO_LARGE[kind], whole * unit, np.inf)
    size = np.where(np.isinf(values), np.inf, size).astype(np.float32)  # exact
    size = np.copysign(size, np.where(np.isnan(values), 0, values))
    bits = size.astype(np.float16).view(np.uint16) if kind == "float16" else (size.view(np.uint32) >> 16)
    return np.where(np.isnan(values), 0x7FFF, bits).astype(np.uint16).view(kind)


def philox(counter: np.ndarray, key: tuple[int, int]) -> np.ndarray:
    """Philox4x32-10 of Salmon et al. 2011: uint32 [n, 4] by the counters [n, 4]."""
    a, b, c, d = counter.astype(np.uint64).T
    low, left, right = np.uint64(0xFFFFFFFF), *map(np.uint64, key)
    for _ in range(10):
        one, other = a * np.uint64(0xD2511F53), c * np.uint64(0xCD9E8D57)
        a, b, c, d = (other >> 32) ^ b ^ left, other & low, (one >> 32) ^ d ^ right, one & low
        left, right = (left + np.uint64(0x9E3779B9)) & low, (right + np.uint64(0xBB67AE85)) & low
    return np.stack((a, b, c, d), axis=1).astype(np.uint32)


def numbers_of(shape: tuple[int, ...], seed: int, step: int) -> np.ndarray:
    """The random number of every element of an array."""
    size = int(np.prod(shape))
    blocks = np.arange(-(-size // 4))
    counter = np.stack([np.broadcast_to(word, blocks.shape) for word in (blocks, blocks >> 32, *_words(step))], axis=1)
    return philox(counter, _words(seed)).reshape(-1)[:size].reshape(shape)


def _words(number: int) -> tuple[int, int]:
    return number & 0xFFFFFFFF, number >> 32


def boundaries(kind: str) -> np.ndarray:
    """Every number of the type, the middle to the next, and the float32 values beside both; infinite ones and NaN."""
    numbers = widened(np.arange(0x7F80 if kind == "uint16" else 0x7C00, dtype=np.uint16).view(kind))
    upper = np.append(numbers[1:].astype(np.float64), TOO_LARGE[kind])
    middles = ((numbers + upper) / 2).astype(np.float32)
    near = [np.nextafter(some, np.float32(to)) for some in (numbers, middles) for to in (-1, np.inf)]
    special = np.array([np.inf, 3e38, 65535.99, 65536, 1e-45, 1e-40], np.float32)
    values = np.concatenate((numbers, middles, *near, special))
    nan = np.array([0x7F800001, 0x7FC00000, 0x7FFFFFFF, 0x7F80FFFF], np.uint32).view(np.float32)
    return np.concatenate((values, -values, nan, -nan))
