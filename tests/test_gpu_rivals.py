"""What our GPU twins are compared with is declared everywhere, with the reason why it cannot run on a CPU."""

import subprocess
import sys
from pathlib import Path

import pytest
from gpu_twins import RIVALS

import kernels

ROOT = Path(__file__).parent.parent
MISSING = {
    "cusparse": "CuPy is not installed: pip install 'sparse-workbench[cuda12]' (or [cuda13])",
    "torch_cuda": "PyTorch is not installed: pip install 'sparse-workbench[peers]'",
}


def test_the_rivals_of_the_suites_are_there() -> None:
    assert {name.split(".")[0] for name in RIVALS} == {
        *("cublas", "cublas_tf32", "cupyx", "cusparse", "cusparse_anew", "torch_cuda"),
    }


@pytest.mark.parametrize("name", RIVALS)
def test_a_rival_runs_on_no_cpu_and_says_why(name: str) -> None:
    rival = kernels.get(name)
    assert rival.cpu is None
    assert rival.unavailable
    assert rival.rival_of.split(".")[-1] == name.split(".")[1]
    assert rival.operands == kernels.get(rival.rival_of).operands


def test_looking_rivals_up_loads_no_library() -> None:
    code = "import sys, kernels; kernels.names(); print({'torch', 'cupy', 'cupyx'} & set(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert out.strip() == "set()"


def test_without_the_libraries_a_rival_is_listed_and_says_why() -> None:
    """In an interpreter that cannot find them, whatever is installed here."""
    code = """
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name in ("torch", "cupy") else find(name, *rest)
import kernels
for name in ("cusparse", "torch_cuda"):
    print(kernels.get(f"{name}.csr_dense").unavailable)
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert out.strip().splitlines() == list(MISSING.values())
