"""How many threads of kernels tests can have: a machine of one core has one."""

import numba
import pytest

TWO_AT_MOST = min(2, numba.config.NUMBA_NUM_THREADS)
needs_two = pytest.mark.skipif(TWO_AT_MOST < 2, reason="this machine has one core")
