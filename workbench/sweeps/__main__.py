"""The supervisor of a sweep, a process of its own: `python -m workbench.sweeps RUN_FOLDER`.

Where `run_folder.start_run` has given it the environment to measure in, the server that trials are forked from starts
first: it loads their libraries while this process loads its own, which saves the first trial some seconds.

It blocks no signal, whatever whoever started it does: to be asked to stop must reach it, the end of a trial the server.
"""

import importlib
import os
import signal
import sys
from multiprocessing import forkserver
from pathlib import Path

if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    folder = Path(sys.argv[1])
    if "WORKBENCH_PREPARED" in os.environ:  # run_folder.PREPARED, which is not imported: that takes as long
        forkserver.set_forkserver_preload(["workbench.sweeps.preload"])
        os.environ["WORKBENCH_SPEC"] = str(folder / "spec.json")  # so is run_folder.SPEC not
        forkserver.ensure_running()
        del os.environ["WORKBENCH_SPEC"]
    sys.exit(importlib.import_module("workbench.sweeps.runner").supervise(folder))
