"""The supervisor of a sweep, a process of its own: `python -m workbench.sweep RUN_FOLDER`."""

import sys
from pathlib import Path

from workbench.sweep.supervising import supervise

if __name__ == "__main__":
    sys.exit(supervise(Path(sys.argv[1])))
