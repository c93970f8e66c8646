"""The process that measures: `python -m workbench.bench.child` takes a request as JSON, answers one line a cell.

Libraries print what they like: what comes on standard output but the answers goes to standard error. The process ends
when its standard input does, that is, with its parent.
"""

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import threadpoolctl

from kernels import threads
from kernels.rivals import tensorflow_sparse, torch_sparse
from workbench.bench.cells import Cell, field_of
from workbench.bench.measure import measure
from workbench.bench.rounds import Policy
from workbench.measure import bandwidth

SWEEPS = 2
"""Turns over all sizes: a rate that something disturbed in one is right in the other."""


def answers(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """For every cell first that it started, then its rows; or the bandwidths where no cells are asked for."""
    count = request["threads"]
    set_threads(count)
    if not request["cells"]:
        found = [vars(rate) for _ in range(SWEEPS) for rate in bandwidth.measure((count,))]
        yield {"bandwidths": found}
        return
    rates = [bandwidth.Bandwidth(**rate) for rate in request["bandwidths"]]
    limits = bandwidth.Limits(rates, count) if rates else None
    for number, settings in request["cells"]:
        yield {"cell": number}
        field = field_of(Cell.of(settings))
        yield {"cell": number, "rows": measure(field, Policy(**request["policy"]), request["bytes_limit"], limits)}


def set_threads(count: int) -> None:
    """As many threads for every library that is there; each has its own way."""
    threads.set_threads(count)
    threadpoolctl.threadpool_limits(limits=count)
    for rival in (torch_sparse, tensorflow_sparse):
        rival.threads = count


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(1)


def main() -> None:
    """Read the request, answer it."""
    own = os.dup(1)
    os.dup2(2, 1)
    request = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    write: Callable[[str], int] = os.fdopen(own, "w", buffering=1).write
    for answer in answers(request):
        write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
