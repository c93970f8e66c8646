"""The suites, each with a full and a quick selection of configurations."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import kernels
from kernels.registry import unknown_name
from workbench.bench import device as of_device
from workbench.bench.candidates import list_tasks
from workbench.bench.configurations import Cell
from workbench.bench.device import CACHES
from workbench.bench.shapes import SHAPES, BenchError, Shape, shape_of

WIDTHS = (1, 2, 4, 8, 16, 32, 64, 100, 128, 256)
WIDTHS_LARGE = (1, 4, 16, 64, 128)
"""Where a batch has 65,536 rows and a call takes long."""

SMALL = tuple(Shape("small batch", rows, 10_000, 20, slope=1.0) for rows in (32, 64))
"""Two sizes of batch, from which what a call takes beyond its work follows."""

SIZED = ("criteo clicks", "reuters text")
"""Shapes that are measured at other numbers of rows, too."""


def _kernels(quick: bool) -> Iterator[Cell]:
    """Yield the configurations of the kernel suite; fewer if `quick`."""
    for shape in _shapes(quick):
        yield from (Cell("kernels", "csr_dense", shape, width) for width in _product_widths(shape, quick))
        for task in list_tasks():
            if task != "csr_dense":
                yield from (Cell("kernels", task, shape, width) for width in _widths(task, shape, quick))


def _shapes(quick: bool) -> list[Shape]:
    """Return the batch shapes of the kernel suite."""
    if quick:
        return [*map(shape_of, ("uniform 100k", "power law 1M", "square 8192, 1 %")), *SMALL]
    sizes = [shape_of(name, rows) for rows in (256, 65_536) for name in SIZED]
    return [*SHAPES.values(), *sizes, *SMALL]


def _product_widths(shape: Shape, quick: bool) -> tuple[int, ...]:
    """Return the dense widths N at which products are timed on a shape."""
    if quick:
        return (16,) if shape in SMALL else (1, 4, 16, 64)
    return WIDTHS_LARGE if shape.name in SIZED and shape.rows > 4096 else WIDTHS


MAIN = ("csr_t_dense", "sgd_fused", "adam_fused", "plan")
"""Tasks that are measured on all shapes; the others on two."""

OTHERS = ("power law 1M", "reuters text")


def _widths(task: str, shape: Shape, quick: bool) -> tuple[int, ...]:
    """Widths of a task on a shape: none if it is not measured there."""
    has_width = task != "plan" and any("N" in dict(axes) for _, _, axes in kernels.get(task).parsed)
    all_columns = task == "csr_t_dense_full"
    if shape in SMALL:
        return (16,) if has_width and not all_columns else ()
    if task in ("dense_to_csr", "csr_to_dense"):
        return (1,) if shape.name.startswith("square") else ()
    if task in MAIN:
        chosen = ((1, 16, 64) if not quick else (16,)) if shape.slope or not quick else ()
    else:
        full = shape.name in OTHERS and shape.rows == 4096 and not quick
        chosen = (1, 16, 64) if full else (16,) if quick and shape.name == OTHERS[0] else ()
    return chosen if has_width else chosen[:1]


FEW_ROWS = Shape("32 rows of 14", 32, 123, 14)
"""A batch as people train with on tables of a few columns: what a step takes beyond its work."""


def _step(quick: bool) -> Iterator[Cell]:
    """Yield the configurations of the training-step suite on the CPU."""
    for batches in ("repeat", "new"):
        yield Cell("step", "step", FEW_ROWS, 1, "adagrad", batches)
    for features in (100_000, 1_000_000) if quick else (100_000, 1_000_000, 10_000_000):
        shape = Shape(f"power law {features:,}", 4096, features, 32, sigma=0.2, slope=1.2)
        for width in (16,) if quick else (1, 16, 64):
            for optimizer in ("sgd", "adam") if quick else ("sgd", "adagrad", "adam"):
                for batches in ("repeat", "new"):
                    yield Cell("step", "step", shape, width, optimizer, batches)


ROWS_ON_CUDA = (256, 4096, 65_536)


def _step_on_cuda(quick: bool) -> Iterator[Cell]:
    """Yield the configurations of the training-step suite on CUDA."""
    for rows in ROWS_ON_CUDA:
        shape = Shape("power law 1,000,000", rows, 1_000_000, 32, sigma=0.2, slope=1.2)
        for width in (16,) if quick else (16, 64):
            for optimizer in ("adagrad",) if quick else ("sgd", "adagrad", "adam"):
                for batches in ("repeat", "new"):
                    yield Cell("step", "step", shape, width, optimizer, batches, device="cuda")


QUICK_ON_CUDA = (
    *("csr_dense", "csr_t_dense", "sddmm", "plan", "softmax", "take_rows"),
    *("sgd_fused", "adagrad_fused", "adam_fused", "adagrad_lazy"),
)


def _kernels_on_cuda(quick: bool) -> Iterator[Cell]:
    """Yield each configuration with warm caches and with cold ones."""
    known = QUICK_ON_CUDA if quick else of_device.list_device_tasks()
    cells = [cell for cell in _kernels(quick) if cell.task in known]
    if quick:
        large = shape_of("criteo clicks", 65_536)
        cells.append(Cell("kernels", "adagrad_fused", shape_of("power law 1M"), 64))  # which a goal is of
        cells += [
            Cell("kernels", task, large, N) for task in ("csr_dense", "sgd_fused", "adam_fused") for N in (16, 64)
        ]
    for cell in cells:
        yield from (replace(cell, device="cuda", cache=cache) for cache in CACHES)


def _pytorch(quick: bool) -> Iterator[Cell]:
    """Loops of PyTorch: logistic regression on new batches, with and without the two lines that the bridge changes."""
    for features in (100_000, 1_000_000):
        for rows in (1024,) if quick else (256, 1024):
            shape = Shape(f"power law {features:,}", rows, features, 32, sigma=0.2, slope=1.2)
            yield from (Cell("pytorch", "pytorch", shape, width, "adam", "new") for width in (1, 16, 64))
            yield Cell("pytorch", "pytorch", shape, 16, "adagrad", "new")


def starts_of(suite: str, quick: bool = False) -> list[str]:
    """Return kernels whose first call is measured: all of ours in the full suite of kernels."""
    every = [name for name in kernels.names() if "." not in name and not name.endswith("_dense_full")]
    return {"kernels": ["csr_dense", "csr_t_dense"] if quick else every}.get(suite, [])


SUITES: dict[str, dict[str, Callable[[bool], Iterator[Cell]]]] = {
    "kernels": {"cpu": _kernels, "cuda": _kernels_on_cuda},
    "step": {"cpu": _step, "cuda": _step_on_cuda},
    "pytorch": {"cpu": _pytorch},
}


def cells_of(suite: str, quick: bool = False, only: str = "", shape: str = "", device: str = "cpu") -> list[Cell]:
    """Return the configurations of a suite, those of a task or shape alone where named.

    `BenchError` lists the known.
    """
    if suite not in SUITES:
        raise BenchError(unknown_name("suite", suite, SUITES))
    if device not in SUITES[suite]:
        raise BenchError(unknown_name(f"device of the suite {suite}", device, SUITES[suite]))
    cells = list(SUITES[suite][device](quick))
    for what, name in (("task", only), ("shape", shape)):
        names = [cell.task if what == "task" else cell.shape.name for cell in cells]
        if name and name not in names:
            raise BenchError(unknown_name(f"{what} in this selection of the suite", name, dict.fromkeys(names)))
        cells = [cell for cell, each in zip(cells, names, strict=True) if not name or each == name]
    return cells
