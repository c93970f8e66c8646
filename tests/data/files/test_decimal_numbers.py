"""Numbers of text have the bits that Python's `float` gives them, and nothing else is taken for a number."""

import random
import struct
from decimal import Decimal, localcontext

import numpy as np
import pytest

from kernels.code_cache import njit
from workbench.data.files.decimal_numbers import BAD, INEXACT, parse_placeholders, placeholder, read_number

ODD = [
    *("0", "-0", "+0", "00012", "1.", ".5", "-.5e-3", "1E5", "+1.5", "1e22", "1e23", "8.5e15", "0e999999999999"),
    *("1e-320", "4.9e-324", "2.2250738585072011e-308", "2.2250738585072014e-308", "1.7976931348623157e308"),
    *("9007199254740993", "9007199254740992.5", "9223372036854775808", "18446744073709551615", "18446744073709551616"),
    *("1.00000000000000011102230246251565404236316680908203125", "123456789012345678901234567890", "1e309", "1e-400"),
    *("1.00000000000000011102230246251565404236316680908203124", "0." + "0" * 400 + "1", "1" + "0" * 300),
    *("1.00000000000000011102230246251565404236316680908203126", "0" * 40 + "1.5", "0." + "0" * 30 + "25"),
]


@njit(nogil=True, error_model="numpy")
def read_lines(text, values, states, ends):
    at = row = 0
    while at < text.size:
        first = at
        value, at, states[row] = read_number(text, at)
        values[row] = placeholder(first) if states[row] == INEXACT else value
        ends[row] = at
        while text[at] != 10:
            at += 1
        at += 1
        row += 1


def read(tokens):
    text = ("\n".join(tokens) + "\n").encode()
    values, states, ends = np.zeros(len(tokens)), np.zeros(len(tokens), np.int8), np.zeros(len(tokens), np.int64)
    read_lines(np.frombuffer(text, np.uint8), values, states, ends)
    inexact = states == INEXACT
    parse_placeholders(values, text)
    starts = np.cumsum([0, *(len(token) + 1 for token in tokens)])[:-1]
    return values, states, ends - starts, inexact


def expect_bits_of_python(tokens):
    values, states, lengths, _ = read(tokens)
    assert (states != BAD).all()
    assert lengths.tolist() == [len(token) for token in tokens]
    expected = np.array([float(token) for token in tokens])
    different = np.flatnonzero(values.view(np.int64) != expected.view(np.int64))
    assert [tokens[place] for place in different] == []


def test_odd_numbers_have_the_bits_of_python():
    expect_bits_of_python(ODD + ["-" + token for token in ODD if token[0] not in "+-"])


def test_random_numbers_have_the_bits_of_python():
    source = random.Random(7)
    bits = [source.getrandbits(64) for _ in range(4000)]
    doubles = [value for value in (struct.unpack("d", struct.pack("Q", bit))[0] for bit in bits) if abs(value) < 1e309]
    tokens = [form % value for value in doubles for form in ("%r", "%.17g", "%.16g", "%.25e", "%.5e")]
    tokens += [f"{source.getrandbits(source.randint(1, 70))}e{source.randint(-360, 310)}" for _ in range(4000)]
    tokens += [f"{source.gauss(0, 100):.{source.randint(0, 25)}f}" for _ in range(4000)]
    expect_bits_of_python(tokens)


def test_digits_of_every_length_are_read_whole_and_alone():
    lengths = range(1, 27)
    tokens = [("9876543210" * 3)[:length] for length in lengths]
    tokens += [f"{token[:count]}.{token[count:]}" for token in tokens for count in range(len(token))]
    expect_bits_of_python(tokens)
    for token in tokens:  # at the end of a text, which eight bytes would reach beyond
        expect_bits_of_python([token])


def test_no_other_byte_counts_as_a_digit():
    others = [chr(code) for code in range(11, 127) if chr(code) not in "0123456789+-.eE"]
    _, _, lengths, _ = read([f"1234{other}5678901" for other in others])
    assert lengths.tolist() == [4] * len(others)


def test_numbers_between_two_doubles_go_to_the_even_one():
    source, tokens = random.Random(8), []
    with localcontext() as context:
        context.prec = 200
        for _ in range(2000):
            value = source.random() * 2.0 ** source.randint(-10, 70)
            above = float(np.nextafter(value, np.inf))
            tokens.append(format((Decimal(value) + Decimal(above)) / 2, "f"))
    expect_bits_of_python(tokens)


def test_few_numbers_are_left_to_python():
    source = random.Random(9)
    _, _, _, inexact = read([repr(source.gauss(0, 1)) for _ in range(1000)])
    assert not inexact.any()
    assert read(["1e-320"])[3].all()  # and this shows that one that is left is seen


@pytest.mark.parametrize("token", ["", "-", "+", ".", "-.", "e5", "1e", "1e+", "nan", "inf", "--1", "+-1", "x"])
def test_other_text_is_no_number(token):
    assert read([token])[1].tolist() == [BAD]


def test_a_number_ends_where_its_digits_do():
    _, states, lengths, _ = read(["1_0", "1:2", "0x10", "1.5.2", "1e5e5", "3 4"])
    assert BAD not in states
    assert lengths.tolist() == [1, 1, 1, 3, 3, 1]
