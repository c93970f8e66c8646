"""What tests of benchmarks leave as they found it."""

import pytest

from kernels.competitors import tensorflow_sparse, torch_sparse


@pytest.fixture(autouse=True, scope="module")
def threads_of_frameworks():
    """The threads that TensorFlow and PyTorch are told of are what they were when the file is over.

    TensorFlow takes them only before it is first used, and a test of another file may have used it.
    """
    before = torch_sparse.threads, tensorflow_sparse.threads
    yield
    torch_sparse.threads, tensorflow_sparse.threads = before
