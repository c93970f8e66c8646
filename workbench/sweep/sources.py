"""Which source files a cell's result depends on, and their hash: edited code makes old rows stale, and only those."""

import functools
import hashlib
import importlib
import inspect
import pkgutil
from pathlib import Path

import kernels
from workbench import models, optimizers
from workbench.sweep.spec import Cell
from workbench.train import Setup

SHARED = (
    "kernels.contract",
    "kernels.threads",
    "kernels.plan",
    "kernels.rules.rule",
    "kernels.rules.twins",
    "kernels.rules.steps",
    "workbench.autodiff",
    "workbench.optimizers.contract",
    "workbench.optimizers.parameter",
    "workbench.optimizers.updater",
    "workbench.measure.clock",
    "workbench.measure.memory",
    "workbench.sweep.trial",
    "workbench.sweep.warm",
)
PACKAGES = (
    "kernels.convert",
    "workbench.formats",
    "workbench.ops",
    "workbench.graph",
    "workbench.executor",
    "workbench.train",
)
ON_CUDA = ("kernels.devices", "kernels.sessions", "kernels.rows.scatter", "kernels.rivals.cusparse")


@functools.cache
def _file_hash(module: str) -> str:
    source = inspect.getsource(importlib.import_module(module))
    return hashlib.sha256(source.encode()).hexdigest()


@functools.cache
def _package_modules(package: str) -> tuple[str, ...]:
    modules = pkgutil.iter_modules(importlib.import_module(package).__path__)
    return (package, *(f"{package}.{module.name}" for module in modules))


@functools.cache
def _cuda_hash() -> str:
    """Hash over all CUDA sources: headers are shared by many of them."""
    files = sorted(file for kind in ("*.cu", "*.cuh") for file in Path(kernels.__file__).parent.rglob(kind))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def modules_of(cell: Cell) -> list[str]:
    """Names of the modules that compute the cell: shared ones, and its own kernels, optimizer, model and data."""
    setup = Setup(format=cell.format, engine=cell.engine, gradient=cell.gradient)
    used = [setup.forward_rule.kernel, setup.gradient_rule.kernel, models.get(cell.model).loss]
    modules = {kernels.get(name).reference.__module__ for name in used}
    rule = "dense" if cell.update == "standard" else "lazy"
    modules.add(kernels.get(f"{cell.optimizer}_{rule}").reference.__module__)
    modules.add(optimizers.get(cell.optimizer).module)
    modules |= {f"workbench.models.{cell.model}", f"workbench.data.{cell.dataset}", "workbench.data.batches"}
    modules.update(SHARED, *map(_package_modules, PACKAGES))
    if cell.device == "cuda":
        modules.update(ON_CUDA, _package_modules("kernels.gpu"))
    return sorted(modules)


def source_hash(cell: Cell) -> str:
    """Hash over the source of `modules_of(cell)`."""
    text = "\n".join(f"{module} {_file_hash(module)}" for module in modules_of(cell))
    text += _cuda_hash() if cell.device == "cuda" else ""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
