"""One executor in two threads: refused, never mixed results."""

import threading
from collections.abc import Callable

import numpy as np
import pytest

from workbench import ops
from workbench.executor import BindError, bind
from workbench.graph import variable


def scores():
    x, w = variable("x"), variable("w")
    arrays = {"x": np.eye(3, dtype=np.float32), "w": np.ones((3, 2), np.float32)}
    return bind(ops.sum(ops.dot(x, w)), arrays, grad_req={"w": "write"})


def in_another_thread(call: Callable[[], object]) -> BaseException | None:
    """What the call raised."""
    raised: list[BaseException | None] = []

    def run():
        try:
            call()
        except BaseException as error:
            raised.append(error)
        else:
            raised.append(None)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return raised[0]


@pytest.mark.parametrize("call", ["forward", "backward"])
def test_call_while_another_thread_is_at_work_is_refused(call: str) -> None:
    executor, errors = scores(), []
    executor.forward(training=True)
    # the other thread's call comes in the middle of this one's, between two of its steps
    executor.forward(training=True, on_step=lambda _: errors.append(in_another_thread(getattr(executor, call))))
    assert errors
    for error in errors:
        with pytest.raises(BindError, match=r"already running, in another call or thread\. Bind an executor for each"):
            raise error
    executor.backward()  # the refused calls have changed nothing
    assert executor.grads["w"].tolist() == [[1, 1]] * 3


def test_gradients_of_another_threads_pass_are_refused() -> None:
    executor = scores()
    executor.forward(training=True)
    with pytest.raises(BindError, match=r"The last forward\(training=True\) was made by another thread"):
        raise in_another_thread(executor.backward)
    executor.backward()


def test_threads_that_take_turns_are_served() -> None:
    executor = scores()
    executor.forward(training=True)
    executor.backward()

    def step():
        executor.forward(training=True, x=2 * np.eye(3, dtype=np.float32))
        executor.backward()

    assert in_another_thread(step) is None
    assert executor.grads["w"].tolist() == [[2, 2]] * 3


def test_executor_works_again_after_an_error() -> None:
    executor = scores()
    with pytest.raises(ZeroDivisionError):
        executor.forward(on_step=lambda _: 1 / 0)
    assert executor.forward()[0] == 6
