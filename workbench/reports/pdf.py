"""A page printed as PDF by a headless Chromium, where the machine has one."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SECONDS = 120
OPTIONS = ("--headless", "--disable-gpu", "--disable-background-networking", "--no-first-run", "--no-pdf-header-footer")


class PrintError(RuntimeError):
    """Failure to print: there is no browser that prints, or it did not; the message says what to do."""


def browser() -> str:
    """The path of a Chromium; `PrintError` where there is none."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        raise PrintError(
            f"PDF is printed by a browser; none of {', '.join(NAMES)} is on the PATH. Print the HTML report."
        )
    return found


def written(page: Path, path: Path) -> Path:
    """Print the HTML file `page` into the PDF file `path`, offline; returns the path. `PrintError` where it fails."""
    program = browser()
    as_root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory(prefix="workbench-print-") as home:
        command = [program, *OPTIONS, *as_root, f"--user-data-dir={home}", f"--print-to-pdf={path.resolve()}"]
        command.append(page.resolve().as_uri())
        try:
            done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise PrintError(f"{program} did not print {page} within {SECONDS} s.") from None
    if done.returncode or not path.exists():
        why = done.stderr.decode(errors="replace").strip()[-300:]
        raise PrintError(f"{program} ended with status {done.returncode} and printed nothing: {why}")
    return path
