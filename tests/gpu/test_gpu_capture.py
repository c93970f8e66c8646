"""The emulator captures work as a CUDA graph does: nothing runs then, and what no device could capture is an error."""

import numpy as np
import pytest

import kernels
from tests.support.cases import random_case
from tests.support.emulator.device import EmulatorError, emulator


def test_a_graph_repeats_its_calls_with_the_numbers_of_its_capture_and_the_arrays_as_they_are(session) -> None:
    x, y = emulator.put(np.eye(3)), emulator.put(np.arange(9.0).reshape(3, 3))
    outs, chosen = [emulator.zeros((3, 3), np.float64) for _ in range(2)], [0]
    session.matmul(x, y, outs[1])
    emulator.clear(outs[1])
    graph = emulator.recorded(lambda: session.matmul(x, y, outs[chosen[0]]))
    assert graph.calls == []
    graph()
    assert graph.calls == ["matmul"]
    np.testing.assert_array_equal(outs[0].host, y.host)
    chosen[0], y.host[...] = 1, 7
    graph()
    np.testing.assert_array_equal(outs[0].host, np.full((3, 3), 7))
    assert not outs[1].host.any()


def test_nothing_runs_while_a_graph_is_captured(session) -> None:
    array = emulator.put(np.ones(3))
    emulator.clear(emulator.put(np.ones(1)))
    ((name, call),) = emulator.capture(lambda: emulator.clear(array))
    assert name == "clear"
    assert array.host.all()
    call()
    assert not array.host.any()


REFUSED = {
    "made": (lambda session, array: emulator.empty(3, np.float32), EmulatorError, "an array was made while a graph"),
    "put": (lambda session, array: emulator.put(np.ones(3)), EmulatorError, "an array was made while a graph"),
    "read": (lambda session, array: emulator.read(array), EmulatorError, "an array was read while a graph"),
    "copied": (lambda session, array: session.fill(array, np.ones(3)), EmulatorError, "no part of a graph was queued"),
    "marked": (lambda session, array: session.mark(), EmulatorError, "no part of a graph was queued"),
    "new product": (
        lambda session, array: session.matmul(array.reshape(3, 1), array.reshape(1, 3)[:1], array.reshape(3, 1)),
        EmulatorError,
        "matmul was called for the first time while a graph",
    ),
    "nested": (lambda session, array: emulator.recorded(lambda: None)(), EmulatorError, "a graph was captured while"),
}


@pytest.mark.parametrize(("work", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_what_no_graph_can_hold_is_an_error_and_the_capture_ends(session, work, error, message: str) -> None:
    array = emulator.put(np.ones(3))
    with pytest.raises(error, match=message):
        emulator.recorded(lambda: work(session, array))()
    emulator.empty(3, np.float32)


def test_a_kernel_that_was_never_launched_is_an_error(session) -> None:
    update = kernels.get("sgd_dense")
    there = [arg if isinstance(arg, float) else emulator.put(arg) for arg in update.arguments(random_case(5, 4, 9, 3))]
    with pytest.raises(EmulatorError, match="called for the first time while a graph is captured"):
        emulator.recorded(lambda: update.gpu(*there))()
