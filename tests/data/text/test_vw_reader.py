"""The compiled reader of Vowpal Wabbit text gives what the one in Python gives, bit for bit, and refuses the rest."""

import random

import numpy as np
import pytest

from workbench.data.text import vowpal_wabbit
from workbench.data.text.vowpal_wabbit import read_rows

NAMES = ["red", "x", "7", "007", "0", "2147483647", "2147483648", "9" * 25, "-3", "é", "a_b", "'t", "abcd", "abcde"]
NAMES += ["1.5"]
VALUES = ["", ":1", ":0.5", ":-1e-3", ":+2", ":.25", ":0.12345678901234567", ":-0", ":3e38"]


def text_of(seed, rows=60, namespaces=("a", "b", "", "a:2", "12", ":0.5"), names=NAMES):
    source = random.Random(seed)
    lines = []
    for _ in range(rows):
        label = source.choice(["1", "-1", "0.25", "1 1", "1 1.0 0", "2 'tag", "3 1 'tag"])
        sections = []
        for _ in range(source.randint(1, 3)):
            words = [source.choice(names) + source.choice(VALUES[:-1]) for _ in range(source.randint(0, 5))]
            sections.append(source.choice(namespaces) + source.choice([" ", "  ", "\t"]) + " ".join(words))
        separator = "" if label.endswith("tag") and source.random() < 0.5 else " "
        lines.append(f"{label}{separator}|" + "|".join(sections) + source.choice(["", " ", "\r"]))
        lines += [source.choice(["", "  "])] * (source.random() < 0.1)
    return ("\n".join(lines) + "\n").encode()


def expect_same(text, hashed, ignored=False):
    block = read_rows(text, ignored)
    assert not isinstance(block, int)
    compiled = vowpal_wabbit._Reading("rows.vw", hashed, ignored).of_block(block)
    python = vowpal_wabbit._Reading("rows.vw", hashed, ignored).rows(text.split(b"\n"), 1)
    assert compiled.are_numbers == python.are_numbers
    assert block.lines == text.count(b"\n")
    for one, other in zip(compiled[:-1], python[:-1], strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one.view(np.uint8), other.view(np.uint8))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("hashed", [False, True])
def test_random_text_gives_the_bits_of_python(seed, hashed):
    expect_same(text_of(seed), hashed)


@pytest.mark.parametrize("hashed", [False, True])
def test_names_that_are_whole_numbers_give_the_bits_of_python(hashed):
    text = text_of(3, namespaces=("f",), names=["7", "007", "0", "2147483647"])
    expect_same(text, hashed)
    assert vowpal_wabbit._Reading("", hashed, False).of_block(read_rows(text, False)).are_numbers == (not hashed)


@pytest.mark.parametrize("text", [b"", b"\n", b"1 |\n", b"1 | \n1 |a\n", b"1 'tag|a x\n", b"1 |:2 x\n"])
def test_small_text_gives_the_bits_of_python(text):
    expect_same(text, False)


def test_importance_is_passed_over_where_it_is_ignored():
    expect_same(b"1 2 |a x\n-1 0.5 0.1 'tag|a y\n", False, ignored=True)
    assert read_rows(b"1 2 |a x\n", False) == 1


@pytest.mark.parametrize(
    "line",
    [
        *("|a x", "1|a x", "'tag |a x", "1 x:2", "one |a x", "nan |a x", "1_0 |a x", "1:0.5 2:1 |a x", "1 2 3 4 |a x"),
        *("1 2 |a x", "1 1 0.5 |a x", "1 |a x:red", "1 |a x:", "1 |a x:1_0", "1 |a x:nan", "1 |a x:1e39", "1 |a :3"),
        *("1 |a:1e30 x:1e30", "1 |a:x y", "1 |a x:1:2", "1", "1 'tag", "1e39 |a x", "1 |a:1e39 x", "1 |a x:1e-320"),
    ],
)
def test_what_python_is_to_read_is_left_to_it(line):
    assert read_rows(f"1 |a x\n{line}\n".encode(), False) == 2


def test_numbers_that_compiled_code_leaves_are_read(tmp_path):
    (tmp_path / "rows.vw").write_text("1 | x:2\n" * 5 + "1 | x:1e-320\n" + "1 | x:3\n" * 5)
    (rows,) = vowpal_wabbit.read(tmp_path / "rows.vw", True, False)
    assert rows.values.tolist() == [2] * 5 + [1e-320] + [3] * 5


def test_reading_compiles_once():
    read_rows(b"1 | x\n", False)
    before = len(vowpal_wabbit._read_rows.signatures)
    read_rows(b"1 |a x:2\n", True)
    assert len(vowpal_wabbit._read_rows.signatures) == before == 1
