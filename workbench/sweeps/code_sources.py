"""The source files that a configuration's result depends on, so that edited code invalidates only records it
computed."""

from collections.abc import Iterator
from pathlib import Path

import kernels
from workbench import formats, models, ops
from workbench.measure import closure
from workbench.ops.products.methods import METHODS
from workbench.sweeps.spec import Cell
from workbench.training import Setup

TRIAL = frozenset({"workbench.sweeps.trial", "workbench.measure.child"})
"""What a child runs; all that is not looked up by a name of the cell's follows from it."""

SEVERAL = frozenset({"workbench.cluster.training"})
"""What the child of a cell with several trainers runs."""

ON_CUDA = frozenset({"workbench.training.device"})
"""What is imported where a training is made, and by a training on cuda alone."""


def work_of(cell: Cell, usual: str) -> str:
    """Return "module:function" that the trial's process calls: `usual`, or the function that starts several
    trainers."""
    return usual if cell.trainers == 1 else "workbench.cluster.training:answers"


def roots_of(cell: Cell) -> frozenset[str]:
    """Return the modules that computing the configuration starts from, and those it looks up by names that its
    settings give."""
    modules = closure.registering_modules("kernel", _kernels(cell))
    modules |= closure.registering_modules("model", [cell.model]) | closure.registering_modules(
        "data set", [cell.dataset]
    )
    modules |= closure.registering_modules("optimizer", [cell.optimizer])
    modules |= closure.registering_modules("format", formats.names())  # each is asked whether an array is of it
    modules |= closure.registering_modules(
        "operator", ops.names()
    )  # which name each other, by attributes of their package
    modules |= SEVERAL if cell.trainers > 1 else frozenset()
    return TRIAL | modules | (ON_CUDA if cell.device == "cuda" else frozenset())


def kernels_of(cell: Cell) -> dict[str, str]:
    """Return the kernels of the product, the loss, the gradient and the update of a step, by the phase that they are
    timed in.

    A fused gradient is in the update's; models with more than one product have these for that of X.
    """
    setup = Setup(format=cell.format, engine=cell.engine, gradient=cell.gradient)
    kind = "fused" if cell.gradient == "fused" else "dense" if cell.update == "standard" else "lazy"
    products = {"forward": setup.forward_rule.kernel, "loss": models.get(cell.model).loss}
    gradient = {} if cell.gradient == "fused" else {"gradient": setup.gradient_rule.kernel}
    return products | gradient | {"update": f"{cell.optimizer}_{kind}"}


def _kernels(cell: Cell) -> Iterator[str]:
    """Yield the names of the kernels of the configuration's products, loss and update."""
    setup = Setup(format=cell.format, engine=cell.engine, gradient=cell.gradient)
    used = {method.kernel for method in METHODS if (method.x, method.y) == (cell.format, "dense")}
    named = {setup.forward_rule.kernel, setup.gradient_rule.kernel, models.get(cell.model).loss}
    yield from named | {kernel for kernel in used if ("." in kernel) == (cell.engine != "ours")}
    yield f"{cell.optimizer}_dense"  # one file has the lazy and fused one, too
    if cell.device == "cuda":
        library = {"dense": "cublas.", "vendor": "cusparse."}.get(cell.engine)
        yield from (name for name in kernels.names() if library and name.startswith(library))


def modules_of(cell: Cell) -> frozenset[str]:
    """Return the names of the modules that compute the configuration."""
    return closure.installed_code().modules(roots_of(cell), _excluded_modules(cell))


def files_of(cell: Cell, code: closure.Code | None = None) -> list[Path]:
    """Return the files that compute the configuration; on cuda with what is compiled for it."""
    return (code or closure.installed_code()).files(roots_of(cell), _excluded_modules(cell), cell.device == "cuda")


def source_hash(cell: Cell, code: closure.Code | None = None) -> str:
    """Return the hash of the text of `files_of(cell)`."""
    return (code or closure.installed_code()).digest(roots_of(cell), _excluded_modules(cell), cell.device == "cuda")


def _excluded_modules(cell: Cell) -> frozenset[str]:
    """Return the modules that a configuration's result does not depend on: those for CUDA on the CPU."""
    return frozenset() if cell.device == "cuda" else ON_CUDA
