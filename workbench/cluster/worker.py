"""A process that holds shards and runs trainers: `python -m workbench.cluster.worker SCHEDULER [CERTIFICATES]`.

It says its address in a line of JSON, or that the scheduler is "unreached" and why, and ends with its input: whoever
started it and is gone leaves nothing behind. What it prints besides goes to standard error.
"""

import asyncio
import json
import os
import socket
import sys
import threading
from typing import Any
from urllib.parse import urlsplit

from workbench.cluster.security import PAGES, SECONDS_JOIN, is_local, security_of, settings

try:
    import dask
    from distributed import Worker
except ImportError as error:
    raise ImportError("A cluster needs Dask: pip install 'sparse-workbench[cluster]'.") from error


SECONDS_REACH = 20.0
"""How long the scheduler, which was there before, may take to let this process in."""


def unreachable_reason(scheduler: str) -> str:
    """Try to connect to the address `scheduler`; return a phrase on why it fails, "" if it succeeds."""
    parts = urlsplit(scheduler)
    try:
        socket.create_connection((parts.hostname, parts.port), SECONDS_REACH).close()
    except OSError as error:
        return f"the machine that started it at {scheduler}: {error}. A firewall has to let it."
    return ""


async def serve(scheduler: str, certificates: str) -> None:
    """Run a Dask worker of the scheduler until that ends it; print {"address": ...} as a line of JSON first.

    `certificates` is the folder of certificate and key, "" without encryption. Standard output is redirected to
    standard error afterwards.
    """
    host = "127.0.0.1" if is_local(scheduler) else None
    options: dict[str, Any] = {"nthreads": 1, "memory_limit": 0, "host": host, "death_timeout": SECONDS_JOIN}
    options["dashboard_address"] = PAGES
    with dask.config.set(settings()):
        async with Worker(scheduler, security=security_of(certificates), **options) as worker:
            print(json.dumps({"address": worker.address}), flush=True)
            os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
            await worker.finished()


def _end_with_input() -> None:
    """Exit the process (status 0) when standard input closes; body of a thread."""
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os._exit(0)  # trainers may be at work, and nothing here is to be kept


def main() -> None:
    """Serve the scheduler and certificates of the command line, and exit; the second is optional.

    Prints {"unreached": why} and exits with status 1 if the scheduler cannot be reached.
    """
    threading.Thread(target=_end_with_input, daemon=True).start()
    if why := unreachable_reason(sys.argv[1]):
        print(json.dumps({"unreached": why}), flush=True)
        os._exit(1)
    asyncio.run(serve(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""))
    os._exit(0)


if __name__ == "__main__":
    main()
