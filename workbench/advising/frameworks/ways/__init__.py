"""Ways to train in a framework, one framework a file, and the process that times them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from kernels.registry import Registry, unknown_name
from workbench import data
from workbench.advising.frameworks.training import RATE, Candidate, Problem, Sizes, measure
from workbench.formats.compressed import assemble
from workbench.measure import memory
from workbench.measure.race import Policy, set_threads
from workbench.sweeps.spec import SpecError

FRAMEWORKS = {
    "pytorch": ("torch", "PyTorch", "pip install 'sparse-workbench[pytorch]'"),
    "tensorflow": ("tensorflow", "TensorFlow", "pip install 'sparse-workbench[tensorflow]'"),
    "keras": ("keras", "Keras", "pip install 'sparse-workbench[tensorflow]'"),
    "jax": ("jax", "JAX", "pip install 'sparse-workbench[jax]'"),
    "sklearn": ("sklearn", "scikit-learn", "pip install scikit-learn"),
}
"""The package that is imported, the name in sentences, and the line that installs it, by the word that is typed."""


@dataclass(frozen=True)
class Way(Candidate):
    """A way to train in a framework: a candidate, with the lines that do the same.

    The side is `independent` for the framework's own ways and `project` for ours. `lines(problem)` is Python to paste,
    which expects `x` as a SciPy sparse matrix [R, D] and labels `y` [R] of any type.
    """

    framework: str = ""
    lines: Callable[[Problem], str] = lambda problem: ""

    def bytes_data(self, problem: Problem) -> int:
        """Return the bytes of X as this way holds it: 4 per element if dense, else those of the CSR arrays."""
        rows = len(problem.labels)
        if self.kind == "dense":
            return 4 * rows * problem.features
        return problem.csr.data.nbytes + problem.csr.indices.nbytes + problem.csr.indptr.nbytes


_ways: Registry[Way] = Registry("way to train", ("workbench.advising.frameworks.ways",), SpecError)
register, names, get = _ways.register, _ways.names, _ways.get


def register_way(
    framework: str, name: str, kind: str, make: Callable[..., Any], way: str, side: str = "independent", **more: Any
) -> None:
    """Register a way to train in a framework, which needs the package of the framework.

    `framework` is a key of FRAMEWORKS, `kind` "dense" or "sparse", `side` "independent" or "project". `make(problem)`
    returns its trainer; `way` is what the template of the code to paste calls it; `more` are further fields.
    """
    package, _, install = FRAMEWORKS[framework]
    lines = partial(code_to_paste, framework, way)
    register(Way(name, side, kind, make, needs=package, install=install, framework=framework, lines=lines, **more))


ARRAYS = """import numpy as np
import scipy.sparse

x = scipy.sparse.csr_array(x, dtype=np.float32)
classes, y = np.unique(y, return_inverse=True)  # y: for each row the index of its class in classes
epochs = 10

"""
"""Start of the code to paste for frameworks that take classes by their indices, and no other types."""


def code_to_paste(framework: str, way: str, problem: Problem) -> str:
    """Return the Python code of a way to train, by the template of its framework, FRAMEWORK.py.jinja next to this."""
    import jinja2

    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    environment = jinja2.Environment(
        loader=loader, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    sizes = {"features": problem.features, "outputs": problem.outputs, "batch": problem.batch_rows}
    lines = environment.get_template(f"{framework}.py.jinja").render(sizes, way=way, rate=f"{problem.rate:.3g}")
    return lines if framework == "sklearn" else f"{ARRAYS}{lines}"


def ways_of(framework: str) -> list[Way]:
    """Return the candidates (`Way`) of a framework: its own first, dense before sparse; SpecError if it is unknown."""
    if framework not in FRAMEWORKS:
        raise SpecError(unknown_name("framework", framework, FRAMEWORKS))
    found = [way for way in map(get, names()) if way.framework == framework]
    return sorted(found, key=lambda way: (way.side == "project", way.kind, way.like != "", way.name))


# The rows that the ways of a framework are timed on, as CSR and if they fit dense, and the process that times them.

# Process in which the ways of a framework are timed: it reads the rows from a folder and answers with records.

FILE = "rows.npz"


def save(problem: Problem, folder: Path) -> dict[str, Any]:
    """Write the rows as an NPZ file into the folder; return the part of a request by which `read` finds them."""
    one = problem
    np.savez(folder / FILE, indptr=one.csr.indptr, indices=one.csr.indices, data=one.csr.data, labels=one.labels)
    sizes = {"features": one.features, "batch_rows": one.batch_rows, "width": one.outputs}
    density = one.sizes.density
    return {"folder": str(folder), "sizes": sizes | {"density": density}, "rate": one.rate, "dense": len(one.dense) > 0}


def read(request: dict[str, Any]) -> Problem:
    """Return the problem that `save` wrote, dense rows included if there were any."""
    with np.load(Path(request["folder"]) / FILE, allow_pickle=False) as arrays:
        labels = arrays["labels"]
        indptr, indices, data = (arrays[name] for name in ("indptr", "indices", "data"))
    sizes = Sizes(**request["sizes"])
    csr = assemble("csr", indptr, indices, data, (len(labels), sizes.features))
    dense = csr.toarray() if request["dense"] else np.zeros((0, sizes.features), np.float32)
    return Problem(sizes, dense, csr, labels, request["threads"], request["rate"])


def answers(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield `{"at": name}` before each way is prepared, and `{"name": ..., "record": columns}` with its record.

    `request` is what `save` returned, with framework, threads, policy and left_out.
    """
    set_threads(request["threads"])
    yield {"at": "rows"}
    able = [way for way in ways_of(request["framework"]) if way.name not in request["left_out"]]
    yield from measure(read(request), able, Policy(**request["policy"]))


ROWS = 32_768
"""Rows that are trained on at most: a batch takes as long with more."""


def problem_of(dataset: data.Dataset, batch_rows: int, threads: int, bytes_dense: int | None = None) -> Problem:
    """Return the first rows of a data set, whole batches of them, as a problem.

    `dense` has no rows if they would take more than `bytes_dense`, by default half of the memory available. Raises
    SpecError for data whose labels are not single classes. A batch has `batch_rows` rows, or all rows if there are
    fewer; at most 32,768 rows are taken.
    """
    if dataset.kind != "classes":
        raise SpecError(
            f"The labels are {dataset.labels}; advice for a framework needs one class for each row.\n"
            "Type --kind classes if they are classes, or leave --for out."
        )
    classes = max(len(dataset.classes), 2)
    rows = min(dataset.rows, ROWS)
    batch = min(batch_rows, rows)
    rows = rows // batch * batch
    csr = _first_rows(scipy.sparse.csr_array(dataset.x), rows)
    labels = np.asarray(dataset.y[:rows], np.int64)
    features, limit = csr.shape[1], memory.available_bytes() // 2 if bytes_dense is None else bytes_dense
    fits = 4 * rows * features <= limit
    dense = csr.toarray() if fits else np.zeros((0, features), np.float32)
    sizes = Sizes(features, batch, 1 if classes == 2 else classes, csr.nnz / max(rows * features, 1))
    rate = RATE / max(float(csr.data @ csr.data) / rows, 1.0)
    return Problem(sizes, dense, csr, labels, threads, rate)


def _first_rows(x: scipy.sparse.csr_array, rows: int) -> scipy.sparse.csr_array:
    """Return the first rows as CSR with float32 values and int32 indices, sorted, duplicates summed."""
    taken = scipy.sparse.csr_array(x[:rows], dtype=np.float32)
    taken.sum_duplicates()
    parts = taken.indptr.astype(np.int32), taken.indices.astype(np.int32), taken.data
    return assemble("csr", *parts, taken.shape)


def why_no_dense(problem: Problem) -> str:
    """Return why X is not available as a dense array (it is too large), or "" if it is."""
    if len(problem.dense):
        return ""
    gigabytes = 4 * len(problem.labels) * problem.features / 1e9
    return f"X as a dense array takes {gigabytes:.3g} GB for {len(problem.labels):,} rows; that is not free here."
