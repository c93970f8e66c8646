"""A training on several processes, asked for and told of in lines of JSON: `python -m workbench.cluster.training`.

The first line of its input is a request: `where` (`workbench.cluster.dask_hosts`), `folder` for logs, and a `Job`. What
happens is a line each on its output, in the end {"done": ...}, {"stopped"} or {"failed": why}. The end of its input
stops it.
"""

import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from workbench.cluster import code, fitting, remote
from workbench.cluster.security import OpenClusterError
from workbench.cluster.team import Team
from workbench.cluster.trainer import Job
from workbench.data import DataError
from workbench.kvstore import StoreError
from workbench.models import ModelError
from workbench.sweep.grid import threads_of
from workbench.sweep.spec import FILES, Cell, SpecError

Say = Callable[[Mapping[str, Any]], None]


def train(
    where: str,
    settings: Mapping[str, Any],
    trainers: int,
    folder: str | os.PathLike = "runs/train",
    *,
    shards: int | None = None,
    address: str = "",
    tell: Say = lambda said: None,
    begun: Callable[[Team], None] = lambda team: None,
    work: str = remote.WORK,
    **options: Any,
) -> dict[str, Any] | None:
    """Train a cell by so many trainers on the cluster `where`; what trainer 0 answered, None where it was stopped.

    `settings` are those of `workbench train` by name; `options` are those of `Job`, such as `steps_saved`. Logs and
    checkpoints are in `folder`, from which a training of the same settings goes on; with `steps_saved=0` there are no
    checkpoints. `address` is that at which other machines reach this one, "" for one on the way to them
    (`workbench.sweep.reaching`). `tell` gets what happens (`Team`), on a thread of its own; `begun` the team, whose
    `stop` ends it.
    """
    try:
        from workbench.cluster.dask_hosts import Hosts
    except ImportError as error:
        raise SpecError(str(error)) from None
    files = {name: str(Path(settings[name]).resolve()) for name in FILES if settings.get(name)}
    cell = Cell(**{**settings, **files})  # other machines have other working directories
    fitting.check(cell, trainers)
    folder = Path(folder).resolve()
    kept = str(folder) if options.get("steps_saved", 1) else ""
    job = Job(cell.model_dump(mode="json"), trainers, kept, code=code.described(), **options)
    with Hosts(where, folder, address=address) as hosts:
        addresses = hosts.addresses()
        tell({"processes": [hosts.name(address) for address in addresses]})
        if hosts.own and where.startswith("local:") and job.threads is None:
            job = replace(job, threads=max(threads_of(cell) // len(addresses), 1))
        team = Team(hosts, job, shards, tell, work)
        begun(team)
        return team.run()


def serve(request: Mapping[str, Any], say: Say, ended: threading.Event) -> None:
    """Do a request and tell of it; `ended` stops it."""

    def stop_when_asked(team: Team) -> None:
        def wait_and_stop() -> None:
            ended.wait()
            team.stop()

        threading.Thread(target=wait_and_stop, daemon=True).start()

    try:
        answer = train(**request, tell=say, begun=stop_when_asked)
    except (StoreError, SpecError, DataError, ModelError, OpenClusterError, OSError) as error:
        say({"failed": str(error)})
        return
    except Exception as error:  # whatever it is, it is told to who asked, and printed here
        traceback.print_exc(file=sys.stderr)
        say({"failed": f"{type(error).__name__}: {error}"})
        return
    say({"stopped": True} if answer is None else {"done": answer})


def main() -> None:
    """Serve on standard input and output."""
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started it is asked, and ends the input
    lock, ended = threading.Lock(), threading.Event()

    def say(said: Mapping[str, Any]) -> None:
        with lock:
            print(json.dumps(said), file=out, flush=True)

    def read_to_the_end() -> None:
        while sys.stdin.read(1):
            pass
        ended.set()

    request = json.loads(sys.stdin.readline())
    threading.Thread(target=read_to_the_end, daemon=True).start()
    serve(request, say, ended)
    os._exit(0)  # threads of the cluster have nothing to keep


if __name__ == "__main__":
    main()
