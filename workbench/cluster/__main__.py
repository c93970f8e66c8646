"""The supervisor of a sweep on several machines, a process of its own: `python -m workbench.cluster RUN_FOLDER`."""

import signal
import sys
from pathlib import Path

from workbench.cluster.coordinator import Coordinator
from workbench.sweeps.runner import supervise

if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # whatever whoever started it blocks
    sys.exit(supervise(Path(sys.argv[1]), Coordinator))
