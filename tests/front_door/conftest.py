"""Small data in memory, a tiny sweep and an advice, measured once for all tests of this folder, supervised here.

Sweeps that a process of their own supervises: `test_sweep.py`; an advice with one: README's, in `test_docs.py`.
"""

import numpy as np
import pytest
import scipy.sparse

import workbench as wb
from tests.support.sweeps import supervised_here

TINY = {"format": ["csr", "dense"], "update": "lazy", "engine": "ours", "execution": "step", "storage": "same"}


def small(rows: int = 300, features: int = 40) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    """A matrix of a tenth of entries, and labels that follow from its rows."""
    x = scipy.sparse.csr_array(scipy.sparse.random(rows, features, 0.1, format="csr", random_state=0))
    sums = np.asarray(x.sum(axis=1)).ravel()
    return x, np.array(["ham", "spam"])[(sums > np.median(sums)).astype(int)]


@pytest.fixture(scope="session")
def data() -> tuple[scipy.sparse.csr_array, np.ndarray]:
    return small()


@pytest.fixture(scope="session")
def result(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("front_door")
    with pytest.MonkeyPatch.context() as patch, supervised_here():
        patch.chdir(folder)
        made = wb.sweep(*data, density=[0.02, 0.1], rounds=1, trial_seconds=0.01, **TINY)
        made.folder = made.folder.resolve()
    return made


@pytest.fixture(scope="session")
def advice(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("advice")
    with pytest.MonkeyPatch.context() as patch, supervised_here():
        patch.chdir(folder)
        made = wb.advise(*data, budget=5)
        made.result.folder = made.result.folder.resolve()
    return made
