"""Making arrays dense: never silent, refused where asked, told with the user's own line."""

import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

from workbench import formats, ops
from workbench.ops import fallback

X = formats.to_format(np.float32([[0, 2, 0], [1, 0, -3]]), "csr")
R = formats.RowSparse(np.float32([[1, 2]]), [1], (3, 2))


@pytest.fixture(autouse=True)
def nothing_warned_of(monkeypatch):
    monkeypatch.setattr(fallback, "_warned", set())


def line_of(text: str) -> int:
    """The line of this file that has the text, the first one."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return 1 + next(number for number, line in enumerate(lines) if text in line)


def test_the_warning_names_operator_formats_shape_bytes_and_the_line():
    with pytest.warns(ops.DensifyWarning) as caught:
        came = ops.cos(X)  # the line that is meant
    assert isinstance(came, np.ndarray)
    np.testing.assert_array_equal(came, np.cos(X.toarray()))
    (warning,) = caught
    here = line_of("# the line that is meant")
    assert (warning.filename, warning.lineno) == (__file__, here)
    assert warning.message.entry == ops.Densified("cos", ("csr",), ((2, 3),), 24, __file__, here)
    assert str(warning.message).startswith("cos has no rule for csr. Making (2, 3) dense takes 24 bytes, at ")
    assert str(warning.message).endswith(f"test_ops_fallback.py:{here}")


def test_a_gradient_too_names_the_users_line_and_only_sparse_inputs_count():
    dense = np.ones((2, 3), np.float32)
    with pytest.warns(
        ops.DensifyWarning, match=r"^stored_divide has no rule for dense, csr. Making \(2, 3\)"
    ) as caught:
        ops.get("log").gradient(dense, dense, (X,), {})  # a gradient
    assert caught[0].lineno == line_of("# a gradient")


def test_each_place_is_warned_of_once_and_recorded_each_time():
    def places():
        for _ in range(3):
            ops.cos(X)
            ops.cos(R)
        ops.cos(X)

    with pytest.warns(ops.DensifyWarning) as caught, ops.recording() as log:
        places()
    assert len(caught) == 3
    assert [entry.formats for entry in log] == [("csr",), ("row_sparse",)] * 3 + [("csr",)]
    assert log[0].place != log[-1].place


def test_records_nest_and_end():
    def nested() -> list:
        ops.cos(X)
        with ops.recording() as log:
            ops.exp(X)
        ops.sin(X)
        return log

    with pytest.warns(ops.DensifyWarning), ops.recording() as outer:
        inner = nested()
    with pytest.warns(ops.DensifyWarning):
        ops.cosh(X)
    assert [entry.op for entry in outer] == ["cos", "exp"]
    assert [entry.op for entry in inner] == ["exp"]


def test_strict_refuses_before_anything_is_made_dense():
    with ops.settings(strict=True), ops.recording() as log, warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ops.DensifyError, match=r"^cos has no rule for row_sparse.*strict refuses it. Convert with"):
            ops.cos(R)
        assert ops.sin(R).format == "row_sparse"
        assert ops.cos(R.toarray()).shape == (3, 2)
    assert not log


def test_a_budget_refuses_what_is_larger():
    with ops.settings(fallback_budget_bytes=23):
        with pytest.raises(ops.DensifyError, match=r"takes 24 bytes.*fallback_budget_bytes is 23\."):
            ops.cos(X)
        with ops.settings(fallback_budget_bytes=24), pytest.warns(ops.DensifyWarning):
            ops.cos(X)
        with ops.settings(strict=True), pytest.raises(ops.DensifyError, match="strict"):
            ops.cos(X)
        with pytest.raises(ops.DensifyError, match="budget"):
            ops.exp(X)
    with pytest.warns(ops.DensifyWarning):
        ops.exp(X)


def test_the_size_is_known_before_memory_is_taken():
    huge = formats.zeros((1_000_000, 1_000_000), "csr", np.float64)
    with ops.settings(fallback_budget_bytes=10**9), pytest.raises(ops.DensifyError, match="8,000,000,000,000 bytes"):
        ops.cos(huge)


def test_settings_are_of_one_thread():
    seen = []

    def other():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seen.append(isinstance(ops.cos(X), np.ndarray))

    with ops.settings(strict=True), ops.recording() as log:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert seen == [True]
    assert not log


def test_an_error_within_leaves_the_settings_as_they_were():
    with pytest.raises(ZeroDivisionError), ops.settings(strict=True), ops.recording():
        1 / 0  # noqa: B018
    with pytest.warns(ops.DensifyWarning):
        ops.cos(X)
