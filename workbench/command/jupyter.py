"""Starting JupyterLab on the project's notebooks."""

import contextlib
import importlib.metadata
import importlib.util
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from workbench.command.output import echo

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
"""The notebooks of a source tree; an installed wheel has them among its data files."""
FIRST = "00_start.ipynb"
"""The notebook that is opened, where the folder has it."""
DISTRIBUTION = "sparse-workbench"

CONTAINERS = (Path("/.dockerenv"), Path("/run/.containerenv"))
"""Files that Docker and Podman put into the containers that they make."""

QUIET = ("--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate")
"""Options without which JupyterLab asks whether to show news, and looks for a newer version of itself."""


def start(folder: Path | None = None, options: Sequence[str] = ()) -> None:
    """Replace this process by JupyterLab on `folder`, with Jupyter's own options; the first notebook is open.

    Without a folder that is the notebooks of the source tree, or in an installed package the current folder, to which
    the first notebook is copied if it is not there. Ctrl-C and the exit status are Jupyter's.

    Raises
    ------
    ImportError
        If JupyterLab is not installed; the message has the line that installs it.
    NotADirectoryError
        If `folder` is not a folder.
    """
    if importlib.util.find_spec("jupyterlab") is None:
        raise ImportError("JupyterLab is not installed; pip install 'sparse-workbench[lab]', or: make lab")
    if folder is None:
        folder = NOTEBOOKS if NOTEBOOKS.exists() else with_first_notebook(Path.cwd())
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is not a folder; name one that holds notebooks.")
    sys.stdout.flush()
    opened = f"/tree/{quote(FIRST)}" if (folder / FIRST).exists() else ""
    own = [f"--ServerApp.root_dir={folder.resolve()}", f"--LabApp.default_url=/lab{opened}", *QUIET]
    os.execv(sys.executable, [sys.executable, "-m", "jupyterlab", *own, *options])


def with_first_notebook(folder: Path) -> Path:
    """Copy the installed first notebook into the folder unless it is there; return the folder."""
    installed = _installed_notebook()
    if installed is not None and not (folder / FIRST).exists():
        shutil.copyfile(installed, folder / FIRST)
        echo(f"{FIRST} is copied to {folder}.", err=True)
    return folder


def _installed_notebook() -> Path | None:
    """Return the path of the first notebook as the wheel installed it; None if it is not installed from a wheel."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        for file in importlib.metadata.files(DISTRIBUTION) or ():
            if file.name == FIRST:
                return Path(str(file.locate()))
    return None


def options_of(port: int | None, no_browser: bool, allow_root: bool, ip: str | None) -> list[str]:
    """Return Jupyter's command-line options; None for `port` and `ip` leaves Jupyter's own.

    --allow-root is added for root, --no-browser in a container.
    """
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    is_contained = any(file.exists() for file in CONTAINERS)
    options = {
        f"--port={port}": port is not None,
        f"--ip={ip}": ip is not None,
        "--no-browser": no_browser or is_contained,
        "--allow-root": allow_root or is_root,
    }
    return [option for option, is_given in options.items() if is_given]
