"""The child's side of `workbench.measure.child`: do a request, send each answer as a line of JSON.

It imports nothing but the standard library, so that what is measured loads its libraries in the environment given.
"""

import importlib
import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Mapping
from multiprocessing.connection import Connection, wait


def serve(connection: Connection, work: str, request: str, environment: Mapping[str, str], log: str | None) -> None:
    """Call `work`, a "module:function" that takes the request and yields answers, and send each as it comes.

    The process takes no notice of Ctrl-C, which is its parent's, and ends when its parent has ended. What libraries
    print goes to the file `log`.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if log is not None:
        _print_into(log)
    multiprocessing.set_start_method("fork", force=True)  # locks of libraries leave nothing behind when it is killed
    if environment != os.environ:
        os.environ.clear()
        os.environ.update(environment)
    module, function = work.split(":")
    answers = getattr(importlib.import_module(module), function)
    with open(connection.fileno(), "wb", closefd=False) as pipe:
        for answer in answers(json.loads(request)):
            pipe.write(json.dumps(answer).encode() + b"\n")
            pipe.flush()


def _end_with_parent() -> None:
    wait([multiprocessing.parent_process().sentinel])
    os._exit(1)


def _print_into(log: str) -> None:
    handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    os.close(handle)
