"""The contract of a way to train in a framework, and the registry of the ways."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kernels.registry import Registry, unknown_name
from workbench.bench.fair.contract import Competitor
from workbench.bench.fair.problem import Problem
from workbench.bench.shapes import BenchError

FRAMEWORKS = {
    "pytorch": ("torch", "PyTorch", "pip install 'sparse-workbench[pytorch]'"),
    "tensorflow": ("tensorflow", "TensorFlow", "pip install 'sparse-workbench[tensorflow]'"),
    "keras": ("keras", "Keras", "pip install 'sparse-workbench[tensorflow]'"),
    "sklearn": ("sklearn", "scikit-learn", "pip install scikit-learn"),
}
"""The package that is imported, the name in sentences, and the line that installs it, by the word that is typed."""


def _no_lines(problem: Problem) -> str:
    return ""


@dataclass(frozen=True)
class Way(Competitor):
    """A way to train in a framework: a candidate of `workbench.bench.fair.measure`, with the lines that do the same.

    The side is `independent` for the framework's own ways and `project` for ours. `lines(problem)` is Python to paste,
    which expects `x` as a SciPy CSR matrix [R, D] and labels `y` [R].
    """

    framework: str = ""
    lines: Callable[[Problem], str] = _no_lines

    def bytes_data(self, problem: Problem) -> int:
        """Return the bytes of X as this way holds it: four a place, or of CSR eight an entry and four a row."""
        rows = len(problem.labels)
        if self.kind == "dense":
            return 4 * rows * problem.features
        return problem.csr.data.nbytes + problem.csr.indices.nbytes + problem.csr.indptr.nbytes


_ways: Registry[Way] = Registry("way to train", ("workbench.bench.frameworks.ways",), BenchError)
register, names, get = _ways.register, _ways.names, _ways.get


def register_way(
    framework: str,
    name: str,
    kind: str,
    make: Callable[..., Any],
    lines: Callable[[Problem], str],
    side: str = "independent",
    **more: Any,
) -> None:
    """Register a way to train in a framework, which needs the package of the framework."""
    package, _, install = FRAMEWORKS[framework]
    register(Way(name, side, kind, make, needs=package, install=install, framework=framework, lines=lines, **more))


def ways_of(framework: str) -> list[Way]:
    """Return the ways of a framework: its own first, dense before sparse; `BenchError` lists the known frameworks."""
    if framework not in FRAMEWORKS:
        raise BenchError(unknown_name("framework", framework, FRAMEWORKS))
    found = [way for way in map(get, names()) if way.framework == framework]
    return sorted(found, key=lambda way: (way.side == "project", way.kind, way.like != "", way.name))
