"""A process that holds shards and runs trainers: `python -m workbench.cluster.worker SCHEDULER [CERTIFICATES]`.

It says its address in a line of JSON, and ends with its input: whoever started it and is gone leaves nothing behind.
What it prints besides goes to standard error.
"""

import asyncio
import json
import os
import sys
import threading
from typing import Any

from workbench.cluster.dask_settings import PAGES, SECONDS_JOIN, security_of, settings
from workbench.cluster.security import is_local

try:
    import dask
    from distributed import Worker
except ImportError as error:
    raise ImportError("A cluster needs Dask: pip install 'sparse-workbench[cluster]'.") from error


async def serve(scheduler: str, certificates: str) -> None:
    """Join, say so, and stay until told to go."""
    host = "127.0.0.1" if is_local(scheduler) else None
    options: dict[str, Any] = {"nthreads": 1, "memory_limit": 0, "host": host, "death_timeout": SECONDS_JOIN}
    options["dashboard_address"] = PAGES
    with dask.config.set(settings()):
        async with Worker(scheduler, security=security_of(certificates), **options) as worker:
            print(json.dumps({"address": worker.address}), flush=True)
            os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
            await worker.finished()


def _end_with_input() -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os._exit(0)  # trainers may be at work, and nothing here is to be kept


def main() -> None:
    """Serve; the second argument is left out where nothing is encrypted."""
    threading.Thread(target=_end_with_input, daemon=True).start()
    asyncio.run(serve(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""))
    os._exit(0)


if __name__ == "__main__":
    main()
