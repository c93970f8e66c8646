"""Competitors from the extra `peers`: registered with the reason where it is absent, right where it is there."""

import contextlib
from pathlib import Path

import numpy as np
import pytest

import kernels
from benchmarks import competitors
from benchmarks.competitors import torch_cuda
from kernels import KernelError
from tests.support.cases import CASES
from tests.support.implementations import assert_close, copies, run
from tests.support.processes import printed

ROOT = Path(__file__).parents[2]
PEERS = {"torch": "PyTorch", "tensorflow": "TensorFlow"}
LIBRARIES = ("torch", "tensorflow", "cupy")
MISSING = {
    "torch": "PyTorch is not installed: pip install 'sparse-workbench[peers]'",
    "torch_cuda": "PyTorch is not installed: pip install 'sparse-workbench[peers]'",
    "tensorflow": "TensorFlow is not installed: pip install 'sparse-workbench[peers]'",
    "cupyx": "CuPy is not installed: pip install 'sparse-workbench[cuda12]' (or [cuda13])",
}
NAMES = [name for name in competitors.names() if name.split(".")[0] in PEERS]
HERE = [name for name in competitors.names() if competitors.get(name).cpu and not (name in NAMES and "_fused" in name)]
UPDATES = [name for name in NAMES if name.endswith("_fused")]
ON_CUDA = [name for name in competitors.names() if name.startswith("torch_cuda.")]


@pytest.mark.parametrize("name", NAMES)
def test_a_competitor_says_how_to_get_it_or_has_a_twin(name):
    kernel = competitors.get(name)
    assert kernel.competitor_of == name.split(".")[1]
    if kernel.cpu is None:
        library = PEERS[name.split(".")[0]]
        assert kernel.unavailable == f"{library} is not installed: pip install 'sparse-workbench[peers]'"
    else:
        assert not kernel.unavailable


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize("name", HERE)
def test_a_competitor_computes_what_the_reference_defines(name, case):
    kernel = competitors.get(name)
    args = kernel.arguments(case)
    assert_close(case, run(kernel.cpu, args), run(kernel.reference, args))


def test_competitors_are_found_by_what_they_compete_with():
    libraries = ["cupyx", "cusparse", "cusparse_anew", "numba", "scipy", "tensorflow", "torch", "torch_cuda"]
    found = [kernel.name for kernel in competitors.competitors_of("csr_dense")]
    assert found == [f"{name}.csr_dense" for name in libraries]
    assert competitors.competitors_of("softmax") == []
    with pytest.raises(KernelError, match="Unknown kernel 'nothing'"):
        competitors.competitors_of("nothing")


@pytest.mark.parametrize("name", [name for name in NAMES if name not in UPDATES])
def test_what_is_prepared_is_what_the_twin_computes(name):
    kernel, case = competitors.get(name), CASES["width 16"]
    if kernel.cpu is None:
        pytest.skip(kernel.unavailable)
    args = kernel.arguments(case)
    call = kernel.prepare(*args)
    came = [np.asarray(args[-1] if result is None else result).copy() for result in (call(), call())]
    kernel.cpu(*args)
    # To rounding: a library may sum in another order from call to call, by how many of its threads are free.
    assert_close(case, came, [args[-1], args[-1]])


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize("name", UPDATES)
def test_an_update_is_what_the_kernel_that_it_competes_with_defines(name, case):
    kernel = competitors.get(name)
    if kernel.cpu is None:
        pytest.skip(kernel.unavailable)
    args = kernel.arguments(case)
    prepared, expected = copies(args), run(kernel.reference, args)
    step = kernel.prepare(*prepared)
    assert step() is None
    assert_close(case, prepared, expected)
    assert_close(case, run(kernel.cpu, args), expected)


@pytest.mark.parametrize("name", UPDATES)
def test_a_second_step_goes_on_from_the_first(name):
    kernel, case = competitors.get(name), CASES["width 16"]
    if kernel.cpu is None:
        pytest.skip(kernel.unavailable)
    args = kernel.arguments(case)
    once = run(kernel.reference, args)
    numbers = kernel.operands.split().index("step:s") if "step:s" in kernel.operands else None
    twice = run(kernel.reference, tuple(arg + (place == numbers) for place, arg in enumerate(once)))
    step = kernel.prepare(*args)
    step(), step()
    count = len(kernel.writes)
    assert_close(case, list(args[:count]), twice[:count])


@pytest.mark.parametrize("name", [*UPDATES, *[name for name in ON_CUDA if name.endswith("_fused")]])
def test_an_update_refuses_what_pytorch_cannot_do(name):
    kernel = competitors.get(name)
    args = kernels.get(kernel.competitor_of).arguments(CASES["plain"])
    message = "for sparse gradients has no decay 0.5, rescale 0.5, clip 0.5; pass decay 0.0, rescale 1.0, clip inf"
    with pytest.raises(KernelError, match=message):
        kernel.prepare(*args)


@pytest.mark.parametrize("case_name", ["plain", "no entries", "width 16", "64 bits", "many rows", "full column"])
@pytest.mark.parametrize("name", ON_CUDA)
def test_what_runs_on_cuda_computes_the_same_with_arrays_of_the_cpu(monkeypatch, name, case_name):
    """Of its steps only the stream is the device's own."""
    pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'sparse-workbench[peers]'")
    monkeypatch.setattr(torch_cuda, "stream", contextlib.nullcontext)
    kernel, case = competitors.get(name), CASES[case_name]
    args = kernel.arguments(case)
    expected = run(kernel.reference, args)
    assert kernel.prepare(*args)() is None
    assert_close(case, list(args), expected)


def test_looking_competitors_up_loads_no_library():
    loaded = "{'torch', 'tensorflow', 'cupy', 'cupyx'} & set(sys.modules)"
    assert printed(f"import sys; from benchmarks import competitors; competitors.names(); print({loaded})") == "set()\n"


def test_without_the_library_a_competitor_is_listed_and_says_why():
    """In an interpreter that cannot find them, whatever is installed here."""
    code = f"""
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name in {LIBRARIES} else find(name, *rest)
from benchmarks import competitors
for name in {tuple(MISSING)}:
    print(competitors.get(f"{{name}}.csr_dense").cpu, competitors.get(f"{{name}}.csr_dense").unavailable)
"""
    assert printed(code).splitlines() == [f"None {reason}" for reason in MISSING.values()]
