"""The compiled reader of Vowpal Wabbit text gives what plain Python gives, bit for bit, and refuses the rest."""

import random

import numpy as np
import pytest
from sklearn.utils import murmurhash3_32

from workbench.data.text import vowpal_wabbit
from workbench.data.text.vowpal_wabbit import read_rows

NAMES = ["red", "x", "7", "007", "0", "2147483647", "2147483648", "9" * 25, "-3", "é", "a_b", "'t", "abcd", "abcde"]
NAMES += ["1.5"]
VALUES = ["", ":1", ":0.5", ":-1e-3", ":+2", ":.25", ":0.12345678901234567", ":-0", ":5e-324", ":3e38"]


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


def hash_of(name, seed=0):
    """Return the hash of a name as that program defines it, by scikit-learn's MurmurHash3."""
    if name.isdigit():
        return (int(name) + seed) % 2**32
    return murmurhash3_32(name, seed, positive=True) if name else seed


def rows_by_python(text, hashed):
    """Return the arrays of `vowpal_wabbit.Rows` of valid text, read line by line by Python."""
    labels, lengths, names, hashes, values, namespaces = [], [0], [], [], [], set()
    for line in filter(bytes.strip, text.split(b"\n")):
        before, *parts = line.strip(b"\r").split(b"|")
        labels.append(float(before.split()[0]))
        lengths.append(0)
        for part in parts:
            tokens = part.split()
            first = tokens.pop(0) if tokens and not part[:1].isspace() else b""
            namespace, _, weight = first.partition(b":")
            for name, _, value in (token.partition(b":") for token in tokens):
                names.append(name)
                hashes.append(hash_of(name, hash_of(namespace)))
                values.append(float(value or 1) * float(weight or 1))
                namespaces.add(namespace)
                lengths[-1] += 1
    are_numbers = not hashed and len(namespaces) < 2 and all(name.isdigit() and int(name) < 2**31 for name in names)
    columns = np.array(list(map(int, names)), np.int64) if are_numbers else np.array(hashes, np.uint32)
    return np.array(labels), np.cumsum(lengths, dtype=np.int64), columns, np.array(values, np.float64), are_numbers


def expect_same(folder, text, hashed, ignored=False):
    (folder / "rows.vw").write_bytes(text)
    (rows,) = vowpal_wabbit.read(folder / "rows.vw", hashed, ignored)
    expected = rows_by_python(text, hashed)
    assert read_rows(text, ignored).lines == text.count(b"\n")
    assert rows.are_numbers == expected[-1]
    for one, other in zip(rows[:-1], expected[:-1], strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one.view(np.uint8), other.view(np.uint8))
    return rows


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("hashed", [False, True])
def test_random_text_gives_the_bits_of_python(seed, hashed, tmp_path):
    expect_same(tmp_path, text_of(seed), hashed)


@pytest.mark.parametrize("hashed", [False, True])
def test_names_that_are_whole_numbers_give_the_bits_of_python(hashed, tmp_path):
    text = text_of(3, namespaces=("f",), names=["7", "007", "0", "2147483647"])
    assert expect_same(tmp_path, text, hashed).are_numbers == (not hashed)


@pytest.mark.parametrize("text", [b"\n", b"1 |\n", b"1 | \n1 |a\n", b"1 'tag|a x\n", b"1 |:2 x\n"])
def test_small_text_gives_the_bits_of_python(text, tmp_path):
    expect_same(tmp_path, text, False)


def test_importance_is_passed_over_where_it_is_ignored(tmp_path):
    expect_same(tmp_path, b"1 2 |a x\n-1 0.5 0.1 'tag|a y\n", False, ignored=True)
    assert read_rows(b"1 2 |a x\n", False) is None


@pytest.mark.parametrize(
    "line",
    [
        *("|a x", "1|a x", "'tag |a x", "1 x:2", "one |a x", "nan |a x", "1_0 |a x", "1:0.5 2:1 |a x", "1 2 3 4 |a x"),
        *("1 2 |a x", "1 1 0.5 |a x", "1 |a x:red", "1 |a x:", "1 |a x:1_0", "1 |a x:nan", "1 |a x:1e39", "1 |a :3"),
        *("1 |a:1e30 x:1e30", "1 |a:x y", "1 |a x:1:2", "1", "1 'tag", "1e39 |a x", "1 |a:1e39 x"),
    ],
)
def test_an_invalid_line_is_refused(line):
    assert read_rows(f"1 |a x\n{line}\n".encode(), False) is None


def test_numbers_that_need_exact_arithmetic_are_read(tmp_path):
    (tmp_path / "rows.vw").write_text("1 | x:2\n" * 5 + "1 | x:1e-320\n" + "1 | x:3\n" * 5)
    (rows,) = vowpal_wabbit.read(tmp_path / "rows.vw", True, False)
    assert rows.values.tolist() == [2] * 5 + [1e-320] + [3] * 5


def test_reading_compiles_once():
    read_rows(b"1 | x\n", False)
    before = len(vowpal_wabbit._read_rows.signatures)
    read_rows(b"1 |a x:2\n", True)
    assert len(vowpal_wabbit._read_rows.signatures) == before == 1
