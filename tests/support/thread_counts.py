"""How many threads of kernels tests can have: a machine of one core has one; and which of them calls get."""

import numba
import pytest

from kernels import threads

TWO_AT_MOST = min(2, numba.config.NUMBA_NUM_THREADS)
needs_two = pytest.mark.skipif(TWO_AT_MOST < 2, reason="this machine has one core")


def share_out(monkeypatch: pytest.MonkeyPatch, serial: bool | None = False) -> None:
    """Give the calls of a test all threads, however little their work; keep them on one; or, with None, as it pays."""
    monkeypatch.setattr(threads.this_thread, "is_serial", serial)
    monkeypatch.setattr(threads, "_asked", [None] if serial is False else [])
