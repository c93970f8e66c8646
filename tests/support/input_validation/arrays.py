"""Doors of formats and operators, and of what takes gradients: optimizers and stores."""

import itertools
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.support.input_validation.cases import WEIGHTS, WIDTH, Case, dense, of_each
from tests.support.invalid_arrays import FAULTS, SPARSE, broken, sound
from workbench import formats, kvstore, ops, optimizers
from workbench.formats import RowSparse
from workbench.ops.contract import REQUIRED


def of_formats() -> Iterator[Case]:
    """Conversion, copies, casts, files, assignment."""
    for target in formats.names():
        yield from of_each(f"to_format {target}", lambda x, target=target: formats.to_format(x, target))
    yield from of_each("check", lambda x: formats.check(x, full=True, canonical=False))
    yield from of_each("copy", formats.copy)
    yield from of_each("astype", lambda x: formats.astype(x, np.float64))
    yield from of_each("assign", lambda x: formats.assign(dense(4, 5), x))
    yield from of_each("save", _saved)
    yield from of_each("toarray", RowSparse.toarray, ("row_sparse",))
    yield from of_each("retain", lambda x: x.retain([0, 1, 3]), ("row_sparse",))
    for indices in ([70, 1], [-1, 1], [2**62, 1], [0.5, 1], [np.nan, 1], [[0, 1]], [0]):
        rows = np.array(indices)
        yield f"RowSparse({indices})", lambda rows=rows: RowSparse(dense(2, 5), rows, (4, 5)), True
        yield f"from_rows({indices})", lambda rows=rows: RowSparse.from_rows(rows, dense(2, 5), (4, 5)), True
        if rows.size > 1 and rows.ndim == 1:
            yield f"RowSparse.retain({indices})", lambda rows=rows: sound("row_sparse").retain(rows), True


def _saved(x: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        formats.save(f"{folder}/x", {"x": x})


def of_ops() -> Iterator[Case]:
    """Every operator, with each of its inputs invalid in some way, in turn; products in all their forms and invalid
    in all ways; row numbers."""
    turns = {format: itertools.cycle(FAULTS[format]) for format in SPARSE}
    for name in ops.names():
        for place, format in itertools.product(range(len(ops.get(name).inputs)), SPARSE):
            fault = next(turns[format])
            yield f"{name}({format}: {fault}, at {place})", lambda a=(name, place, format, fault): _op(*a), True
    for result, transposed in itertools.product((None, "dense", "row_sparse", "csr"), (False, True)):
        other = dense(4 if transposed else 5, WIDTH)
        asked = {"result": result, "transpose_a": transposed}
        yield from of_each(f"dot {asked}", lambda x, a=asked, y=other: ops.dot(x, y, **a))
    yield from of_each("dot from the right", lambda y: ops.dot(dense(2, 4), y))
    yield from of_each("dot of two", lambda x: ops.dot(x, x, transpose_b=True))
    yield from of_each("sampled_dot", lambda x: ops.sampled_dot(x, dense(4, 2), dense(2, 5)))
    yield from of_each("multiply", lambda x: ops.multiply(x, dense(4, 5)))
    yield from of_each("add", lambda x: ops.add(x, x))
    yield from of_each("take", lambda x: ops.take(x, np.array([3, 0])))
    yield from of_each("products.multiply", lambda x: ops.products.multiply(x, WEIGHTS), ("csr", "csc", "coo"))
    yield from of_each("make_plan", ops.products.make_plan, ("csr", "coo"))
    for ids in ([4], [-1], [2**62], [0.5], [np.nan]):
        rows = np.array(ids)
        yield f"embedding({ids})", lambda rows=rows: ops.embedding(rows, dense(4, 5)), True
        yield f"embedding row_sparse({ids})", lambda rows=rows: ops.embedding(rows, sound("row_sparse")), True
        for format in (*SPARSE, "dense"):
            yield f"take {format}({ids})", lambda rows=rows, f=format: ops.take(sound(f), rows), True
            yield f"retain {format}({ids})", lambda rows=rows, f=format: ops.retain(sound(f), rows), True


def _op(name: str, place: int, format: str, fault: str) -> Any:
    op = ops.get(name)
    params = {key: 1 for key, value in op.params.items() if value is REQUIRED}
    inputs = [sound(format) for _ in op.inputs]
    inputs[place] = broken(format, fault)
    return op.compute(inputs, op.resolve(params))


def of_optimizers() -> Iterator[Case]:
    """Gradients and weights of an updater; what is pushed and pulled."""
    for lazy, name in itertools.product(("off", "on", "exact"), ("sgd", "adam")):

        def update(gradient: Any, lazy: str = lazy, name: str = name, held: Any = None) -> None:
            weights = dense(4, 5) if held is None else held
            optimizers.Updater(name, lazy=lazy).update({"w": weights}, {"w": gradient})

        yield from of_each(f"update {name} {lazy}", update, ("row_sparse",))
        yield from of_each(
            f"update {name} {lazy} of weights", lambda w, u=update: u(sound("row_sparse"), held=w), ("row_sparse",)
        )
    yield from of_each("init", lambda x: kvstore.LocalStore().init("w", x), ("row_sparse",))
    for held in ("dense", "row_sparse"):
        yield from of_each(f"push to {held}", lambda x, h=held: _store(h).push("w", x), ("row_sparse",))
        yield from of_each(f"push two to {held}", lambda x, h=held: _store(h).push("w", [x, x]), ("row_sparse",))
        yield from of_each(f"step of {held}", lambda x, h=held: _store(h, True).push("w", x), ("row_sparse",))
        for ids in ([4], [-1], [2**62], [0.5], [np.nan]):
            yield f"pull {held}({ids})", lambda h=held, ids=ids: _store(h).row_sparse_pull("w", ids), True


def _store(held: str, steps: bool = False) -> kvstore.LocalStore:
    store = kvstore.LocalStore()
    store.init("w", sound(held))
    if steps:
        store.set_optimizer(optimizers.Updater("sgd"))
    return store
