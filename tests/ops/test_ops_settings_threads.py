"""Settings of operators in other threads: the loader's has those of its creator, others are handed them."""

import contextvars
import threading

import numpy as np
import pytest
import scipy.sparse as sp

from workbench import ops
from workbench.data.batches.feed import prefetch

X = sp.csr_array(np.eye(2))


def test_the_thread_of_a_loader_sees_strict():
    with ops.settings(strict=True):
        ready = prefetch([X], ops.cos, depth=1)
        with pytest.raises(ops.DensifyError, match="strict refuses it"):
            list(ready)


def test_a_context_hands_settings_to_any_thread():
    refused = []

    def work() -> None:
        try:
            ops.cos(X)
        except ops.DensifyError:
            refused.append(True)

    with ops.settings(strict=True):
        thread = threading.Thread(target=contextvars.copy_context().run, args=(work,))
        thread.start()
        thread.join()
    assert refused
