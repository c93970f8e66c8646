"""Process in which the ways of a framework are timed: it reads the rows from a folder and answers with records."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from workbench.bench.child import set_threads
from workbench.bench.fair.configurations import Configuration
from workbench.bench.fair.measure import Policy, measure
from workbench.bench.fair.problem import Problem
from workbench.bench.frameworks.contract import ways_of
from workbench.formats.compressed import assemble

FILE = "rows.npz"


def save(problem: Problem, folder: Path) -> dict[str, Any]:
    """Write the rows into the folder; returns the part of the request that says how to read them."""
    one = problem
    np.savez(folder / FILE, indptr=one.csr.indptr, indices=one.csr.indices, data=one.csr.data, labels=one.labels)
    sizes = {"features": one.features, "batch_rows": one.batch_rows, "width": one.outputs}
    density = one.configuration.density
    return {"folder": str(folder), "sizes": sizes | {"density": density}, "rate": one.rate, "dense": len(one.dense) > 0}


def read(request: dict[str, Any]) -> Problem:
    """Return the rows that `save` wrote."""
    with np.load(Path(request["folder"]) / FILE, allow_pickle=False) as arrays:
        labels = arrays["labels"]
        indptr, indices, data = (arrays[name] for name in ("indptr", "indices", "data"))
    configuration = Configuration(**request["sizes"])
    csr = assemble("csr", indptr, indices, data, (len(labels), configuration.features))
    dense = csr.toarray() if request["dense"] else np.zeros((0, configuration.features), np.float32)
    return Problem(configuration, dense, csr, labels, request["threads"], request["rate"])


def answers(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Answer `{"at": name}` before each way is made ready, and `{"name": ..., "record": {...}}` with its record."""
    set_threads(request["threads"])
    yield {"at": "rows"}
    able = [way for way in ways_of(request["framework"]) if way.name not in request["left_out"]]
    yield from measure(read(request), able, Policy(**request["policy"]))
