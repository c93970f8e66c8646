"""A real Chromium and a real JupyterLab for tests: found or skipped, on a loopback port, ended with the test."""

import contextlib
import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.clocks import SECONDS, until

ROOT = Path(__file__).parents[2]
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = ("--disable-gpu", "--disable-background-networking", "--disable-component-update", "--no-first-run")
OPTIONS += ("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",)
QUIET = {"fetchNews": "false", "checkForUpdates": False}


def chromium() -> str:
    """The path of a Chromium; the test is skipped without one, or fails where CI promises it."""
    if found := next(filter(None, map(shutil.which, NAMES)), None):
        return found
    return _missing(f"no Chromium on the PATH under any of {', '.join(NAMES)}")


def playwright():
    """Playwright's client, under the same terms."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return _missing("Playwright is not installed; pip install 'sparse-workbench[dev]'")
    return sync_playwright


def _missing(what: str):
    if os.environ.get("CI"):
        pytest.fail(f"{what}; in CI the browser tests must run")
    return pytest.skip(what)


@contextlib.contextmanager
def browser() -> Iterator:
    """A Chromium that finds no host but this machine's loopback, and keeps what it loaded there for its next pages."""
    path, client = chromium(), playwright()
    options = [*OPTIONS, *(["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else [])]
    with client() as playwright_:
        opened = playwright_.chromium.launch(executable_path=path, args=options)
        try:
            opened.new_context()
            yield opened
        finally:
            opened.close()


def open_page(opened, width: int = 1400, height: int = 1000):
    """A page that notes every request to elsewhere in `page.refused`; its files are cached with those of others.

    To refuse requests by a route would switch the cache off, and ask this process about each of a thousand files.
    """
    page = opened.contexts[0].new_page()
    page.set_viewport_size({"width": width, "height": height})
    page.set_default_timeout(1000 * SECONDS)
    page.refused = []

    def note(request) -> None:
        if not request.url.startswith(("http://127.0.0.1:", "file:", "data:", "blob:")):
            page.refused.append(request.url)

    page.on("request", note)
    return page


@contextlib.contextmanager
def jupyterlab(folder: Path) -> Iterator[str]:
    """JupyterLab on `folder`, with settings, history and runtime files of its own; yields its address with a token."""
    home, token = folder / ".home", secrets.token_hex(16)
    settings = home / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    (settings / "notification.jupyterlab-settings").write_text(json.dumps(QUIET))
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--ServerApp.root_dir={folder}"]
    command += ["--ServerApp.ip=127.0.0.1", "--ServerApp.port=0", f"--IdentityProvider.token={token}"]
    command += ["--LabApp.extension_manager=readonly", "--ServerApp.terminals_enabled=False"]
    with open(folder / "server.log", "wb") as log:
        server = subprocess.Popen(command, env=_environment(home), stdout=log, stderr=log, start_new_session=True)
        try:
            yield f"{_address(home / 'runtime', server, folder / 'server.log')}lab?token={token}"
        finally:
            server.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(10)
            server.kill()
            server.wait()


def _environment(home: Path) -> dict[str, str]:
    own = {
        "HOME": home,
        "IPYTHONDIR": home / "ipython",
        "JUPYTER_CONFIG_DIR": home / "config",
        "JUPYTER_DATA_DIR": home / "data",
        "JUPYTER_RUNTIME_DIR": home / "runtime",
        "JUPYTERLAB_SETTINGS_DIR": home / "settings",
        "JUPYTERLAB_WORKSPACES_DIR": home / "workspaces",
        "XDG_CACHE_HOME": home / "cache",
        "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))),
    }
    return os.environ | {name: str(value) for name, value in own.items()}


def _address(runtime: Path, server: subprocess.Popen, log: Path) -> str:
    """Where the server listens, once it says so."""

    def said() -> str:
        if server.poll() is not None:
            raise RuntimeError(f"JupyterLab did not start:\n{log.read_text()[-3000:]}")
        for path in runtime.glob("jpserver-*.json"):
            with contextlib.suppress(ValueError, KeyError):  # half written
                return json.loads(path.read_text())["url"]
        return ""

    return until(said)
