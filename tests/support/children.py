"""What the children of test_child do: module:function names that a child imports."""

import contextlib
import os
import signal
import time
from pathlib import Path

from tests.support.clocks import SECONDS, until


def echo(request):
    yield {"came": request, "pid": os.getpid(), "held": os.environ.get("OPENBLAS_CORETYPE")}


def a_stage_alone(request):
    yield {"stage": "preparing data"}


def compiles_long(request):
    yield {"stage": "compiling"}
    time.sleep(0.5)
    yield {"status": "ok", "reason": "compiled", "seconds_compiled": 0.5, "seconds_measured": 0.25}


def waits_after_compiling(request):
    yield {"stage": "compiling"}
    yield {"stage": "measuring"}
    time.sleep(SECONDS)
    yield {"status": "ok"}


def two(request):
    print("printed by the child")
    yield {"number": 1}
    time.sleep(request.get("seconds", 0))
    yield {"number": 2}


def large(request):
    yield {"text": "x" * request["bytes"]}


def nothing(request):
    yield from ()


def fails(request):
    yield {"number": 1}
    raise ValueError("on purpose")


def killed(request):
    os.kill(os.getpid(), request["signal"])
    time.sleep(60)
    yield {}


def send_half(connection, number):
    """A process's target of its own: writes the first part of a large line, then gets the signal."""
    os.write(connection.fileno(), b'{"text": "' + b"x" * 30_000)
    os.kill(os.getpid(), number)


def takes_memory(request):
    block = b"1" * request["bytes"]
    time.sleep(60)
    yield {"held": len(block)}


def lets_a_grandchild_hold_the_pipe(request):
    if os.fork() == 0:
        with contextlib.suppress(AssertionError):
            until(Path(request["until"]).exists, 2 * SECONDS)
        os._exit(0)
    os.kill(os.getpid(), signal.SIGTERM)
    yield {}


def takes_turns(request):
    """Waits for orders: adds the numbers that come, and fails where it is told to."""
    total = 0
    yield {"stage": "began"}
    while True:
        order = yield {"waits": True, "total": total, "pid": os.getpid()}
        if "status" in order:
            yield order
            return
        total += order["number"]


def takes_its_last_turn(request):
    yield {"waits": True}
    yield {"total": 7}
