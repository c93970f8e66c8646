"""What tests of benchmarks share, and leave as they found it."""

import pytest

from benchmarks.competitors import tensorflow_sparse, torch_sparse
from benchmarks.contest import set_threads
from benchmarks.self_trial import trials
from tests.support.self_trial_rows import Measured


@pytest.fixture(autouse=True, scope="module")
def threads_of_frameworks():
    """The threads that TensorFlow and PyTorch are told of are what they were when the file is over.

    TensorFlow takes them only before it is first used, and a test of another file may have used it.
    """
    before = torch_sparse.threads, tensorflow_sparse.threads
    yield
    torch_sparse.threads, tensorflow_sparse.threads = before


@pytest.fixture(scope="module")
def two_threads():
    """Candidates train on two threads."""
    set_threads(2)


@pytest.fixture
def measured(monkeypatch):
    """The trials of a self-trial are not measured; their rows so far."""
    monkeypatch.setattr(Measured, "rows", [])
    monkeypatch.setattr(trials, "Trials", Measured)
    return Measured.rows
