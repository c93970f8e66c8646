"""Doors of the executor, the module and training, also of arrays that are written to after they were taken in."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.support.input_validation.cases import LABELS, WEIGHTS, WIDTH, Case, dense, of_each, of_written
from tests.support.invalid_arrays import WRITTEN, sound
from workbench import data, executor, formats, graph, module, ops, training


def _bound(format: str, is_training: bool = True) -> Any:
    x, w = graph.variable("x", format=format), graph.variable("w")
    request = {"w": "write"} if is_training else "null"
    return executor.bind(ops.dot(x, w), {"w": WEIGHTS.copy()}, shapes={"x": (4, 5)}, grad_req=request)


def of_executor() -> Iterator[Case]:
    """Arguments bound, given, held and written to between calls; heads; constants."""
    w = graph.variable("w", shape=(5, WIDTH))

    def bind(x: Any) -> None:
        executor.bind(ops.dot(graph.variable("x", format=formats.format_of(x)), w), {"x": x}).forward()

    def constant(x: Any) -> Callable[[], Any]:
        return executor.bind(ops.dot(graph.constant(x), w)).forward

    def held(x: Any) -> Callable[[], Any]:
        bound = _bound(x.format, is_training=False)
        bound.forward(x=x)
        return bound.forward

    yield from of_each("bind", bind)
    yield from of_each("forward", lambda x: _bound(x.format, is_training=False).forward(x=x))
    yield from of_each("constant", lambda x: constant(x)())
    yield from of_written("forward again", held)
    yield from of_written("forward of a constant again", constant)
    yield from of_each("head", _head)
    for format in ("csr", "csc", "coo", "row_sparse"):
        for fault in WRITTEN[format]:
            if format in ("csr", "coo"):
                continue  # their gradient reads the plan alone
            yield f"backward({format}: {fault})", lambda given=(format, fault): _backward(*given), True


def _head(x: Any) -> None:
    bound = executor.bind(ops.identity(graph.variable("y", shape=(4, 5))), grad_req="write")
    bound.forward(training=True)
    bound.backward(heads=x)


def _backward(format: str, fault: str) -> None:
    x, bound = sound(format), _bound(format)
    bound.forward(training=True, x=x)
    WRITTEN[format][fault](x)
    bound.backward(heads=dense(4, WIDTH))


def _module(format: str, workers: int = 1) -> Any:
    x, w = graph.variable("data", format=format), graph.variable("w", shape=(5, WIDTH))
    made = module.Module(ops.squared_loss(ops.dot(x, w), graph.variable("label")), workers=workers)
    made.bind(_batch(sound(format))).initialise().set_optimizer("sgd", learning_rate=0.1)
    return made


def _batch(x: Any) -> Any:
    return data.Batch({"data": x}, {"label": LABELS}, np.arange(4))


def of_module() -> Iterator[Case]:
    """Batches by hand, feeds, and data written to while they are trained on."""

    def step(x: Any, workers: int = 1) -> None:
        made = _module(x.format, workers)
        made.forward(_batch(x))
        made.backward()
        made.update()

    def fit(x: Any) -> Callable[[], Any]:
        made, feed = _module(x.format), data.Batches({"data": x}, {"label": LABELS}, rows=2)
        epochs = itertools.count(1)
        return lambda: made.fit(feed, epochs=next(epochs))

    yield from of_each("module", step)
    yield from of_each("module of 2 workers", lambda x: step(x, 2), ("csr", "row_sparse"))
    yield from of_each("bind of a module", lambda x: _module(x.format).forward(_batch(x), training=False))
    yield from of_each("fit", lambda x: fit(x)(), ("csr", "row_sparse"))
    yield from of_written("fit on", fit, ("csr", "row_sparse"))


def _run(x: Any, **setup: Any) -> Any:
    given = {"model": "linear", "format": "csr", "gradient": "fused", "update": "lazy", "optimizer": "sgd", **setup}
    return training.make_run(training.Setup(**given, batch_rows=2), x, LABELS, width=WIDTH)


def of_training() -> Iterator[Case]:
    """`make_run`, its predictions, and data written to between its steps."""
    setups = [
        {},
        {"gradient": "row_sparse"},
        {"format": "coo", "gradient": "row_sparse"},
        {"gradient": "dense", "update": "standard"},
        {"shuffle": True},
    ]

    def steps(x: Any, setup: dict) -> Callable[[], Any]:
        run = _run(x, **setup)
        return lambda: list(run.events(epochs=1))

    def scores(x: Any) -> Any:
        run = _run(sound("csr"))
        return run.predict(x), run.quality(x, LABELS)

    for setup in setups:
        yield from of_each(f"make_run {setup}", lambda x, s=setup: steps(x, s)(), ("csr",))
        yield from of_written(f"steps {setup}", lambda x, s=setup: steps(x, s), ("csr",))
    yield from of_each("predict", scores, ("csr",))
    yield from of_each("Batches", lambda x: list(data.Batches(x, LABELS, rows=2).epoch()), ("csr", "row_sparse"))
