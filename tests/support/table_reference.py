"""Columns of a table encoded value by value in plain Python, the definition that the reader is compared with."""

import bisect
import math
import re
from collections import Counter

import numpy as np
from pandas.util import hash_array

MISSING = {"", "?", "\\N", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None"}


def bucket(text, buckets):
    return int(hash_array(np.array([text], object), categorize=False)[0] % np.uint64(buckets))


def is_missing(value, words=()):
    return value.strip() in MISSING - set(words)


def one_hot(values, known=None):
    """(width, a dict of entries for each value)."""
    names = sorted({value.strip() for value in values if not is_missing(value)}) if known is None else list(known)
    place = {name: number for number, name in enumerate(names)}
    return len(names) + 1, [
        {len(names) if is_missing(value, known or ()) else place.get(value.strip(), len(names)): 1.0}
        for value in values
    ]


def hashed(values, buckets):
    return buckets + 1, [{buckets if is_missing(value) else bucket(value.strip(), buckets): 1.0} for value in values]


def binned(values, bins):
    numbers = [None if is_missing(value) else float(value) for value in values]
    present = sorted(number for number in numbers if number is not None)
    cuts = {present[k * len(present) // bins] for k in range(1, bins)} if present else set()
    edges = sorted(cut for cut in cuts if cut > present[0])
    place = [len(edges) + 1 if number is None else bisect.bisect_right(edges, number) for number in numbers]
    return len(edges) + 2, [{at: 1.0} for at in place]


def kept(values, scaling="none", log=False):
    numbers = [None if is_missing(value) else float(value) for value in values]
    if log:
        numbers = [None if x is None else math.copysign(math.log1p(abs(x)), x) for x in numbers]
    present = [number for number in numbers if number is not None]
    mean = sum(present) / len(present)
    divisor = {
        "none": 1.0,
        "largest": max(map(abs, present)),
        "deviation": math.sqrt(sum((x - mean) ** 2 for x in present) / len(present)),
    }[scaling] or 1.0
    rows = [{1: 1.0} if x is None else {0: x / divisor} if x else {} for x in numbers]
    return 1 + (len(present) < len(numbers)), rows


def words(values, buckets):
    rows = []
    for value in values:
        found = re.findall(r"\w+", value.strip().lower())
        counts = Counter(bucket(word, buckets) for word in found)
        rows.append({buckets: 1.0} if is_missing(value) else dict(counts))
    return buckets + 1, rows


def side_by_side(*columns):
    """The dense matrix of columns, each (width, a dict of entries for each value)."""
    dense = np.zeros((len(columns[0][1]), sum(width for width, _ in columns)), np.float32)
    first = 0
    for width, rows in columns:
        for row, entries in enumerate(rows):
            for at, value in entries.items():
                dense[row, first + at] = value
        first += width
    return dense
