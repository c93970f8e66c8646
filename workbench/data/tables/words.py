"""Text into counts of its words, hashed into buckets."""

from typing import Any, final

import numpy as np

from workbench.data.tables.arrow import Texts, arrow
from workbench.data.tables.encoding import Encoded, hashed
from workbench.data.tables.schema import Column

_BETWEEN = r"[^\p{L}\p{N}_]+"
"""What separates words: RE2 for anything but letters, digits and underscores."""


@final
class Words:
    """Encoder with one column of the matrix for each bucket, which count words, and a last one for missing texts."""

    is_learned = True

    def __init__(self, column: Column) -> None:
        self.column, self.buckets = column, column.buckets or 0

    def learn(self, texts: Texts, row: int) -> None:
        """Nothing is learned."""

    def learned(self) -> Column:
        """The column as it is."""
        return self.column

    def encode(self, texts: Texts, row: int) -> Encoded:
        """Encode each row as one entry for each different word of its text. O(entries + words of distinct texts)."""
        lengths, buckets, counts = self._bags(texts.distinct)
        starts = np.cumsum(lengths) - lengths
        of_row, length = starts[texts.numbers], lengths[texts.numbers]
        before = np.cumsum(length) - length
        entries = np.arange(length.sum()) + np.repeat(of_row - before, length)
        return Encoded(self.buckets + 1, buckets[entries], counts[entries], length.astype(np.int32))

    def _bags(self, distinct: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Entries of each text, their buckets, sorted in each, and counts; the last is for a missing text."""
        compute = arrow().compute
        split = compute.split_pattern_regex(compute.utf8_lower(distinct), _BETWEEN)
        words = split.flatten().dictionary_encode()
        is_word = (compute.binary_length(words.dictionary).to_numpy(zero_copy_only=False) > 0)[words.indices.to_numpy()]
        text = compute.list_parent_indices(split).to_numpy()[is_word].astype(np.int64)
        bucket = hashed(words.dictionary, self.buckets)[words.indices.to_numpy()][is_word]
        keys, counts = np.unique(text * self.buckets + bucket, return_counts=True)
        lengths = np.append(np.bincount(keys // self.buckets, minlength=len(distinct)), 1)
        buckets = np.append(keys % self.buckets, self.buckets).astype(np.int32)
        return lengths, buckets, np.append(counts, 1).astype(np.float32)
