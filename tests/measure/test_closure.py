"""What a result depends on is found by following imports: of each way to import one, and of nothing else."""

import json
import subprocess
import sys

import pytest

import kernels
from kernels.registry import registry_of
from workbench.measure import closure, environment, machine
from workbench.measure.closure import Code

FILES = {
    "kernels/__init__.py": "from kernels.registry import get",
    "kernels/registry.py": "import pkgutil",
    "kernels/lanes.py": "",
    "kernels/products/__init__.py": "",
    "kernels/products/dot.py": "from kernels import lanes\nsource(__file__, ['a'], 'other.cu')",
    "kernels/products/dot.cu": '#include "../gpu/device.cuh"',
    "kernels/products/other.cu": "",
    "kernels/products/unused.cu": "",
    "kernels/products/sum.py": "",
    "kernels/products/mean.py": "",
    "kernels/gpu/device.cuh": '#include "types.cuh"',
    "kernels/gpu/types.cuh": "",
    "workbench/__init__.py": "",
    "workbench/trial.py": "import numpy\nfrom workbench import data\nimport workbench.measure.clock as clock",
    "workbench/measure/__init__.py": "",
    "workbench/measure/clock.py": "",
    "workbench/measure/clock.toml": "",
    "workbench/plots.toml": "",
    "workbench/data/__init__.py": "from workbench.data.batches import Batches",
    "workbench/data/batches.py": "def late():\n    if True:\n        from workbench.data.loader import Loader",
    "workbench/data/loader.py": "import kernels\nkernels.get('sum').trusted(1)",
    "workbench/data/reader.py": "",
    "workbench/plots.py": "from workbench import trial",
    "workbench/types.py": "",
    "workbench/typed.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import workbench.types",
    "workbench/device.py": "import workbench.measure.clock, workbench.types",
    "workbench/chooses.py": "def f():\n    from workbench.device import run",
    "workbench/ops/__init__.py": "def get(name): pass",
    "workbench/asks.py": "from workbench import ops\nops.get('mean')\n{}.get('mean')\nfrom kernels import get as g",
}
KERNELS = {"sum": "kernels.products.sum", "mean": "kernels.products.mean"}


@pytest.fixture
def root(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    return tmp_path


def files(root, *roots, **options):
    return {file.relative_to(root).as_posix() for file in Code(root, KERNELS).files(roots, **options)}


def test_imports_of_every_form_are_followed(root):
    assert files(root, "workbench.trial") == {
        *("workbench/__init__.py", "workbench/trial.py", "workbench/measure/__init__.py", "workbench/measure/clock.py"),
        "workbench/measure/clock.toml",
        *("workbench/data/__init__.py", "workbench/data/batches.py", "workbench/data/loader.py"),
        *("kernels/__init__.py", "kernels/registry.py", "kernels/products/__init__.py", "kernels/products/sum.py"),
    }


def test_a_late_import_is_followed(root):
    assert "workbench/data/loader.py" in files(root, "workbench.data.batches")
    (root / "workbench/data/batches.py").write_text("")
    assert "workbench/data/loader.py" not in files(root, "workbench.data.batches")


def test_a_kernel_is_followed_that_is_asked_for_by_name_and_no_other_entry(root):
    assert "kernels/products/sum.py" in files(root, "workbench.data.loader")
    assert "kernels/products/mean.py" not in files(root, "workbench.asks")


@pytest.mark.parametrize(
    "text",
    [
        "import kernels\nkernels.get('mean')",
        "import kernels as k\nk.get('mean').trusted()",
        "from kernels import registry\nregistry.get('mean')",
        "from kernels.registry import get\ndef f():\n    get('sum' if f else 'mean')()",
    ],
)
def test_every_way_to_ask_for_a_kernel_is_followed(root, text):
    (root / "workbench/asks.py").write_text(text)
    assert "kernels/products/mean.py" in files(root, "workbench.asks")


def test_imports_for_types_alone_are_not_followed(root):
    assert "workbench/types.py" not in files(root, "workbench.typed")


def test_names_that_a_package_imports_when_they_are_used_are_followed(root):
    late = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from workbench.data.batches import Batches"
    (root / "workbench/data/__init__.py").write_text(f"{late}\ndef __getattr__(name): pass")
    assert "workbench/data/loader.py" in files(root, "workbench.trial")


def test_what_is_apart_is_left_out_with_what_it_alone_uses(root):
    assert "workbench/types.py" in files(root, "workbench.chooses")
    assert files(root, "workbench.chooses", apart=["workbench.device"]) == {
        "workbench/__init__.py", "workbench/chooses.py",
    }  # fmt: skip


def test_what_is_compiled_is_the_source_beside_a_file_those_it_names_and_their_headers(root):
    compiled = files(root, "kernels.products.dot", compiled=True) - files(root, "kernels.products.dot")
    assert compiled == {
        *("kernels/products/dot.cu", "kernels/products/other.cu", "kernels/gpu/device.cuh", "kernels/gpu/types.cuh")
    }


def test_the_data_beside_a_file_belong_to_it(root):
    found = files(root, "workbench.trial", compiled=True)
    assert {name for name in found if name.endswith(".toml")} == {"workbench/measure/clock.toml"}


def test_the_hash_follows_each_file_and_no_other(root):
    roots = ["workbench.trial", "kernels.products.dot"]
    first = Code(root, KERNELS).digest(roots, compiled=True)
    inside = files(root, *roots, compiled=True)
    for name in FILES:
        text = (root / name).read_text()
        (root / name).write_text(f"{text}// edited" if name.endswith(("cu", "cuh")) else f"{text}# edited")
        assert (Code(root, KERNELS).digest(roots, compiled=True) != first) == (name in inside), name
        (root / name).write_text(text)
    assert Code(root, KERNELS).digest(roots, compiled=True) == first
    assert 10 < len(inside) < len(FILES) - 5


def test_the_hash_follows_names_and_what_is_added(root):
    first = Code(root, KERNELS).digest(["workbench.trial"])
    (root / "workbench/data/batches.py").write_text(
        FILES["workbench/data/batches.py"] + "\nimport workbench.data.reader"
    )
    assert Code(root, KERNELS).digest(["workbench.trial"]) != first


def test_an_unknown_root_is_refused(root):
    with pytest.raises(ValueError, match=r"There is no module 'workbench.nothing' below"):
        Code(root, KERNELS).digest(["workbench.nothing"])


def test_every_kernel_is_registered_by_a_file_of_the_kernels():
    modules = closure.KernelModules()
    assert {modules["sgd_lazy"], modules["sgd_fused"]} == {"kernels.updates.sgd"}
    assert dict(modules) == {name: registry_of("kernel").origin(name) for name in kernels.names()}
    assert all(closure.installed_code().file_of(module) for module in modules.values())


@pytest.mark.parametrize("name", ["_fused", ".csr_dense", "format", "nothing.csr_dense", "scipy.nothing", ""])
def test_other_words_are_no_kernels(name):
    assert name not in closure.KernelModules()


def test_the_stack_is_that_of_a_process_that_measures(monkeypatch):
    """Whatever BLAS this process has loaded, and however it is held back: keys of a resumed run are the same."""
    here = machine.describe_stack()
    assert {"python", "numpy", "scipy", "numba", "llvmlite", "blas", "cpu"} == set(here)
    assert all(here.values())
    code = "import json; from workbench.measure import machine; print(json.dumps(machine.describe_stack()))"
    held_back = dict(environment.measuring_environment(), OPENBLAS_CORETYPE="Prescott")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=held_back)
    assert json.loads(done.stdout) == here
    assert machine.describe_stack("no-such-package")["no-such-package"] == ""
