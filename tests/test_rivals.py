"""Rivals from the extra `peers`: registered with the reason where it is absent, right where it is there."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cases import CASES

import kernels

ROOT = Path(__file__).parent.parent
PEERS = {"torch": "PyTorch", "tensorflow": "TensorFlow"}
NAMES = [name for name in kernels.names() if name.split(".")[0] in PEERS]


@pytest.mark.parametrize("name", NAMES)
def test_a_rival_says_how_to_get_it_or_has_a_twin(name):
    kernel = kernels.get(name)
    assert kernel.rival_of == name.split(".")[1]
    if kernel.cpu is None:
        library = PEERS[name.split(".")[0]]
        assert kernel.unavailable == f"{library} is not installed: pip install 'sparse-workbench[peers]'"
    else:
        assert not kernel.unavailable


@pytest.mark.parametrize("name", NAMES)
def test_what_is_prepared_is_what_the_twin_computes(name):
    kernel = kernels.get(name)
    if kernel.cpu is None:
        pytest.skip(kernel.unavailable)
    args = kernel.arguments(CASES["width 16"])
    call = kernel.prepare(*args)
    came = [np.asarray(args[-1] if result is None else result).copy() for result in (call(), call())]
    kernel.cpu(*args)
    np.testing.assert_array_equal(came[0], args[-1])
    np.testing.assert_array_equal(came[1], args[-1])


def test_looking_rivals_up_loads_no_library():
    code = "import sys, kernels; kernels.names(); print({'torch', 'tensorflow'} & set(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert out.strip() == "set()"


def test_without_the_library_a_rival_is_listed_and_says_why():
    """In an interpreter that cannot find them, whatever is installed here."""
    code = """
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name in ("torch", "tensorflow") else find(name, *rest)
import kernels
for name in ("torch.csr_dense", "tensorflow.csr_dense"):
    print(kernels.get(name).cpu, kernels.get(name).unavailable)
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    lines = out.strip().splitlines()
    assert lines[0] == "None PyTorch is not installed: pip install 'sparse-workbench[peers]'"
    assert lines[1] == "None TensorFlow is not installed: pip install 'sparse-workbench[peers]'"
