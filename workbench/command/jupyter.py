"""Starting JupyterLab on the project's notebooks."""

import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
FIRST = "00_start.ipynb"
"""The notebook that is opened, where the folder has it."""

CONTAINERS = (Path("/.dockerenv"), Path("/run/.containerenv"))
"""Files that Docker and Podman put into the containers that they make."""


def start(folder: Path | None = None, options: Sequence[str] = ()) -> None:
    """Become JupyterLab on `folder`, with options of its own; `ImportError` with the install line where it is missing.

    The process is Jupyter's from here on, and with it Ctrl-C and the exit status.
    """
    if importlib.util.find_spec("jupyterlab") is None:
        raise ImportError("JupyterLab is not installed; pip install 'sparse-workbench[lab]', or: make lab")
    folder = folder or (NOTEBOOKS if NOTEBOOKS.exists() else Path.cwd())
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is not a folder; name one that holds notebooks.")
    sys.stdout.flush()
    opened = folder / FIRST if (folder / FIRST).exists() else folder
    os.execv(sys.executable, [sys.executable, "-m", "jupyterlab", str(opened), *options])


def options_of(port: int | None, no_browser: bool, allow_root: bool, ip: str | None) -> list[str]:
    """Jupyter's options; what it needs as root, and in a container where there is no browser, is added by itself."""
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    is_contained = any(file.exists() for file in CONTAINERS)
    options = {
        f"--port={port}": port is not None,
        f"--ip={ip}": ip is not None,
        "--no-browser": no_browser or is_contained,
        "--allow-root": allow_root or is_root,
    }
    return [option for option, is_given in options.items() if is_given]
