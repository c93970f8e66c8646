"""What is made dense on the way to a framework has a budget, or is told."""

import numpy as np
import pytest
import scipy.sparse

from workbench import ops
from workbench.bridges import densify
from workbench.formats import FormatError

X = scipy.sparse.csr_array(np.float32([[0, 2], [0, 0], [1, 0]]))


def test_a_budget_that_is_too_small_is_told_with_both_numbers():
    with pytest.raises(ops.DensifyError, match="takes 24 bytes, and budget_bytes is 23"):
        densify(X, 23, why="a layer")


def test_what_is_meant_is_recorded_and_neither_warned_of_nor_refused():
    with ops.recording() as log, ops.settings(strict=True):
        np.testing.assert_array_equal(densify(X, 24, why="a layer"), X.toarray())
    assert [(entry.op, entry.bytes, entry.budget_bytes) for entry in log] == [("densify, a layer", 24, 24)]
    assert "test_dense.py" in log[0].place
    assert "asked for" in str(log[0])


def test_a_dense_array_is_no_densification():
    with ops.recording() as log:
        densify(X.toarray(), 0, why="a layer")
    assert not log


def test_invalid_arrays_are_not_made_dense():
    wrong = X.copy()
    wrong.indices = np.int32([1, 7])
    with pytest.raises(FormatError, match="out of range"):
        densify(wrong, 100, why="a layer")
