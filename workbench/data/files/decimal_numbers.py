"""Decimal numbers of text into doubles by compiled code, with the bits that Python's `float` gives.

A number of up to 19 digits is an integer times a power of ten. Where both are doubles, one product or quotient is exact
(W. D. Clinger, How to read floating point numbers accurately, 1990). Else the integer is multiplied with 128 bits of
the power of five (D. Lemire, Number parsing at a gigabyte per second, 2021, https://arxiv.org/abs/2101.11408), which
decides on the bits of every normal double. What is left, denormal numbers and most with more digits, is left to Python:
`INEXACT` with the position, so that the caller can do it (`parse_placeholders`).
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from kernels.code_cache import njit, njit_part

BAD, EXACT, INEXACT = 0, 1, 2
"""What comes of text: no number, a number, a number that Python has to read."""

SPACE, NEWLINE, PLUS, MINUS, POINT, ZERO, NINE, COLON, COMMA = 32, 10, 43, 45, 46, 48, 57, 58, 44
MOST_DIGITS = 19
"""Digits of an integer that 64 bits hold for sure."""
LEAST_POWER, LARGEST_POWER = -342, 308
"""Powers of ten that some double of 19 digits needs."""
MOST_EXPONENT = 1 << 20
"""Exponents are read up to here: beyond, all numbers are zero or infinite."""
MARK = np.int64(0x7FFC << 48)
"""Bits of a NaN, to which the position of an inexact number is added; text holds no NaN."""

compiled = njit(nogil=True, error_model="numpy", _nrt=False)
"""Decorator of code that reads text: no arithmetic is reordered, and other threads run meanwhile.

References are not counted, which takes a third to half of the time where each number is read by a call; such code may
create views, but no arrays.
"""
compiled_part = njit_part(nogil=True, error_model="numpy")
"""Decorator of a part of such code: it is compiled within the functions that call it."""
compiled_inline = njit_part(nogil=True, error_model="numpy", forceinline=True)
"""Decorator of a part whose machine code stands in place of each call, as it is for every number. Numba's own
`inline="always"` repeats the Python code instead, so that all of it is compiled once a call.
"""

TENS = np.array([10.0**power for power in range(23)])
"""Powers of ten that are doubles."""


WHOLE_TENS = np.array([10**power for power in range(9)], np.uint64)
"""Powers of ten that 8 digits reach."""


def _powers_of_five() -> np.ndarray:
    """Return the first 128 bits of 5**q for each power q, uint64 [powers, 2], high word first.

    Negative q rounded up.
    """
    rows = []
    for power in range(LEAST_POWER, LARGEST_POWER + 1):
        if power >= 0:
            value = 5**power
            bits = value << 128 >> value.bit_length()
        else:
            divisor = 5**-power
            bits = (1 << (127 + divisor.bit_length())) // divisor + 1
        rows.append((bits >> 64, bits & (2**64 - 1)))
    return np.array(rows, np.uint64)


FIVES = _powers_of_five()


WORD_BYTES = 8
_WORD = ir.IntType(64)


@intrinsic
def load_word(typing_context: Any, text: Any, at: Any) -> Any:
    """Compile `load_word(text, at)`: text[at:at + 8] of a uint8 array as little-endian uint64, range unchecked."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        """Emit the unaligned 64-bit load."""
        data = context.make_array(signature.args[0])(context, builder, values[0]).data
        return builder.load(builder.bitcast(builder.gep(data, [values[1]]), _WORD.as_pointer()), align=1, typ=_WORD)

    return types.uint64(text, types.int64), generate


@intrinsic
def store_word(typing_context: Any, text: Any, at: Any, word: Any) -> Any:
    """Compile `store_word(text, at, word)`: text[at:at + 8] = the bytes of a uint64, lowest first, range unchecked."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        """Emit the unaligned 64-bit store."""
        data = context.make_array(signature.args[0])(context, builder, values[0]).data
        builder.store(values[2], builder.bitcast(builder.gep(data, [values[1]]), _WORD.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.none(text, types.int64, types.uint64), generate


@intrinsic
def zeros_behind(typing_context: Any, word: Any) -> Any:
    """Compile `zeros_behind(word)`: the number of trailing zero bits of a uint64, 64 if it is 0."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        """Emit the count-trailing-zeros instruction."""
        return builder.cttz(values[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), generate


@intrinsic
def _zeros_before(typing_context: Any, word: Any) -> Any:
    """Compile `_zeros_before(word)`: the number of leading zero bits of a uint64, 64 if it is 0."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        """Emit the count-leading-zeros instruction."""
        return builder.ctlz(values[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), generate


@intrinsic
def _high_product(typing_context: Any, a: Any, b: Any) -> Any:
    """Compile `_high_product(a, b)`: the upper 64 bits of the 128-bit product of two uint64."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        """Emit the 128-bit product and its shift."""
        wide = ir.IntType(128)
        product = builder.mul(*(builder.zext(value, wide) for value in values))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), _WORD)

    return types.uint64(types.uint64, types.uint64), generate


@compiled_part
def byte_at(text, at):
    """Return byte `at` (not negative) of a uint8 array; an unsigned index spares the test for a negative one."""
    return text[np.uint64(at)]


@compiled_part
def is_blank(code):
    """Return whether a byte code is a blank within a line: space, tab, or a code from 11 to 13."""
    return code == SPACE or code == 9 or 11 <= code <= 13


@compiled_part
def behind_blanks(text, at):
    """Return the first index from `at` on at which `text` (uint8) has no blank; a line end must follow."""
    while is_blank(byte_at(text, at)):
        at += 1
    return at


@compiled_inline
def read_digits(text, at, number):
    """Return (number * 10**n + the n digits at text[at:], index behind them); uint64, modulo 2**64.

    `text` is uint8, and a byte that is no digit must follow. Eight bytes are read at once: in `excess` each byte that
    is no digit has its highest bit set, and the lowest of these says how many digits stand before it. Three products
    add up eight digits (D. Lemire, https://lemire.me/blog/2022/01/21/swar-explained-parsing-eight-digits/); fewer are
    padded with zeros in front. So up to 7 digits take the same instructions, and no branch depends on how many there
    are.
    """
    while at + WORD_BYTES <= text.size:
        word = load_word(text, at) ^ np.uint64(0x3030303030303030)
        excess = (word | (word + np.uint64(0x7676767676767676))) & np.uint64(0x8080808080808080)
        count = zeros_behind(excess) >> np.uint64(3)
        half = np.uint64(4 * WORD_BYTES) - (count << np.uint64(2))
        word = word << half << half  # a shift by all 64 bits has no defined result
        word = word * np.uint64(10) + (word >> np.uint64(8))
        pairs = np.uint64(0x000000FF000000FF)
        upper = (word & pairs) * np.uint64(0x000F424000000064)
        lower = ((word >> np.uint64(16)) & pairs) * np.uint64(0x0000271000000001)
        number = number * WHOLE_TENS[count] + ((upper + lower) >> np.uint64(32))
        at += np.int64(count)
        if count < np.uint64(WORD_BYTES):
            return number, at
    while ZERO <= byte_at(text, at) <= NINE:
        number = number * np.uint64(10) + np.uint64(byte_at(text, at) - ZERO)
        at += 1
    return number, at


@compiled_part
def _scaled(digits, power):
    """Return (bits uint64, state) of the double nearest to digits * 10**power; `digits` is uint64 and not 0.

    The state is EXACT, or INEXACT (bits 0) if the power is out of range or rounding cannot be decided.
    """
    if power < LEAST_POWER or power > LARGEST_POWER:
        return np.uint64(0), INEXACT
    one, zeros = np.uint64(1), _zeros_before(digits)
    shifted = digits << zeros
    row = power - LEAST_POWER
    high, low = _high_product(shifted, FIVES[row, 0]), shifted * FIVES[row, 0]
    if high & np.uint64(0x1FF) == np.uint64(0x1FF):
        more = _high_product(shifted, FIVES[row, 1])
        low += more
        high += np.uint64(more > low)
    if low == np.uint64(0xFFFFFFFFFFFFFFFF) and not -27 <= power <= 55:
        return np.uint64(0), INEXACT
    upper = high >> np.uint64(63)
    shift = upper + np.uint64(9)
    mantissa = high >> shift
    exponent = (((152170 + 65536) * power) >> 16) + 63 + np.int64(upper) - np.int64(zeros) + 1023
    if exponent <= 0 or exponent >= 0x7FF:
        return np.uint64(0), INEXACT
    if low <= one and -4 <= power <= 23 and mantissa & np.uint64(3) == one and mantissa << shift == high:
        mantissa &= ~one  # halfway between two doubles: to the even one
    mantissa = (mantissa + (mantissa & one)) >> one
    if mantissa >= np.uint64(2) << np.uint64(52):
        mantissa = one << np.uint64(52)
        exponent += 1
        if exponent >= 0x7FF:
            return np.uint64(0), INEXACT
    mantissa &= ~(one << np.uint64(52))
    return mantissa | (np.uint64(exponent) << np.uint64(52)), EXACT


@compiled_part
def _rounded(digits, power, is_cut):
    """Return (float64, state) of digits * 10**power; if `is_cut`, of any number whose first digits these are.

    The state is EXACT, or INEXACT if rounding cannot be decided.
    """
    bits, state = _scaled(digits, power)
    if state == EXACT and is_cut:
        above, state = _scaled(digits + np.uint64(1), power)
        state = INEXACT if above != bits else state
    return np.uint64(bits).view(np.float64), state


@compiled_part
def read_number(text, at):
    """Parse a decimal number at text[at:], uint8 of whole lines; return (float64, index behind it, state).

    A number is `[+-]digits[.digits][e[+-]digits]`, with a digit before or after the point. The state is EXACT, BAD if
    there is none, or INEXACT if Python has to read it.
    """
    sign = byte_at(text, at)
    is_negative = sign == MINUS
    if is_negative or sign == PLUS:
        at += 1
    start = at
    digits, at = read_digits(text, at, np.uint64(0))
    count, power = at - start, 0
    if byte_at(text, at) == POINT:
        at += 1
        point = at
        digits, at = read_digits(text, at, digits)
        power = point - at
        count -= power
    if not count:
        return 0.0, at, BAD
    behind = at
    if byte_at(text, at) | 32 == 101:  # e or E
        at += 1
        is_small = byte_at(text, at) == MINUS
        if is_small or byte_at(text, at) == PLUS:
            at += 1
        first, exponent = at, 0
        while ZERO <= byte_at(text, at) <= NINE:
            exponent = min(exponent * 10 + np.int64(byte_at(text, at) - ZERO), MOST_EXPONENT)
            at += 1
        if at == first:
            return 0.0, at, BAD
        power += -exponent if is_small else exponent
    is_cut = False
    if count > MOST_DIGITS:
        digits, power, is_cut = _first_digits(text, start, behind, power)
    if not digits:
        return (-0.0 if is_negative else 0.0), at, INEXACT if is_cut else EXACT
    if digits <= np.uint64(1 << 53) and -22 <= power <= 22 and not is_cut:
        value = np.float64(np.int64(digits))
        value, state = (value / TENS[-power] if power < 0 else value * TENS[power]), EXACT
    else:
        value, state = _rounded(digits, power, is_cut)
    return (-value if is_negative else value), at, state


@compiled_part
def _first_digits(text, start, stop, power):
    """Return (first 19 significant digits uint64, power of ten for them, whether nonzero digits follow).

    text[start:stop] are digits with at most one point; `power` is that of the last digit.
    """
    digits, count, is_cut = np.uint64(0), 0, False
    for at in range(start, stop):
        if text[at] == POINT:
            continue
        digit = np.uint64(text[at] - ZERO)
        if count == MOST_DIGITS:
            power += 1
            is_cut |= digit != 0
        elif count or digit:
            digits = digits * np.uint64(10) + digit
            count += 1
    return digits, power, is_cut


@compiled_part
def placeholder(at):
    """Return a NaN whose bits hold the position `at` of an inexact number in the text, for `parse_placeholders`."""
    return np.int64(MARK | at).view(np.float64)


def parse_placeholders(values: np.ndarray, text: bytes) -> None:
    """Replace each `placeholder` NaN in `values`, float64 [n], in place by the number at its position in `text`."""
    bits = values.view(np.int64)
    for place in np.flatnonzero(np.isnan(values)):
        at = int(bits[place] & ~MARK)
        stop = at
        while chr(text[stop]) in "+-.eE0123456789":
            stop += 1
        values[place] = float(text[at:stop])
