"""The profile of a data set from a process of its own: the caller goes on meanwhile, and may end it at any time.

`python -m workbench.data.profiles.worker '{"dataset": "svmlight", "parameters": {"path": "train.txt"}}'` prints it as
JSON, with the task that the labels are for and the guesses of the reader, or `{"error": "..."}` where the data cannot
be read. What is read is kept in the cache, where trials find it.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, final

from workbench import data

SECONDS_END = 5.0
SHOWN = 300
"""Letters of the last words of a process that failed."""


@final
class Counting:
    """A process at work on the profile of one data set: `poll` it until it has ended, and `stop` it at the end.

    It writes into files: a pipe that nobody reads would fill up.
    """

    def __init__(self, dataset: str, parameters: Mapping[str, Any]) -> None:
        """Start a process that profiles the data set called `dataset`; its output goes to temporary files."""
        asked = json.dumps({"dataset": dataset, "parameters": dict(parameters)})
        self._folder = tempfile.TemporaryDirectory(prefix="workbench-profile-")
        self._out, self._err = (Path(self._folder.name, name) for name in ("out", "err"))
        command = [sys.executable, "-m", "workbench.data.profiles.worker", asked]
        with open(self._out, "wb") as out, open(self._err, "wb") as err:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)

    def poll(self) -> dict[str, Any] | None:
        """Return the profile as JSON values, {"error": message} if it failed, or None while it is computed."""
        status = self._process.poll()
        if status is None:
            return None
        if status == 0:
            return json.loads(self._out.read_bytes())
        last = self._err.read_text("utf-8", "replace").strip()[-SHOWN:]
        return {"error": f"Counting ended with status {status}: {last}"}

    def stop(self) -> None:
        """Kill the process if it is running, and delete its temporary files.

        TimeoutExpired if it does not end in 5 s.
        """
        self._process.kill()
        self._process.wait(SECONDS_END)
        self._folder.cleanup()


def main() -> None:
    """Read the request from the first command line argument, and print the profile or {"error": ...} as JSON."""
    asked = json.loads(sys.argv[1])
    try:
        read = data.load(asked["dataset"], **asked["parameters"])
        task = data.Description(read.labels, read.facts, read.graph is not None).task
        answer = asdict(data.profile(read)) | {"task": task, "guesses": list(read.facts.get("guesses", ()))}
    except (data.DataError, MemoryError) as error:
        answer = {"error": str(error)}
    print(json.dumps(answer, allow_nan=False))


if __name__ == "__main__":
    main()
