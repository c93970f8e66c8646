"""Starting JupyterLab on the project's notebooks."""

import importlib.util
import subprocess
import sys
from pathlib import Path

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


def start(folder: Path | None = None) -> int:
    """Open JupyterLab on `folder`; returns its exit status. `ImportError` with the install line where it is missing."""
    if importlib.util.find_spec("jupyterlab") is None:
        raise ImportError("JupyterLab is not installed; pip install 'sparse-workbench[lab]', or: make lab")
    folder = folder or (NOTEBOOKS if NOTEBOOKS.exists() else Path.cwd())
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is not a folder; name one that holds notebooks.")
    return subprocess.call([sys.executable, "-m", "jupyterlab", str(folder)])
