"""Show that the tests find errors: put each mutant into a copy of the project and run the tests that must fail.

python -m tests.mutants            all mutants
python -m tests.mutants NAME ...   these

Status 0 if all are found; 1 if one survives or cannot be made. Compiled code of unchanged functions is kept
for the next mutants in the folder that NUMBA_CACHE_DIR names, by default one in the copy.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.mutants.catalogue import Mutant, MutantError, load, select

ROOT = Path(__file__).parents[2]
NEEDED = ("kernels", "workbench", "tests", "notebooks", "pyproject.toml", "README.md", "CONTRIBUTING.md")
SECONDS = 900
"""Time after which a mutant counts as found: it made the tests hang."""
NO_TESTS = 5
"""Status of pytest if nothing was selected."""


def copy_project(folder: Path) -> None:
    """Copy what tests need into an empty folder."""
    for name in NEEDED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.nbi", "*.nbc"))
        else:
            shutil.copy(source, folder / name)


def run_tests(mutant: Mutant, folder: Path) -> int:
    """Run the tests of a mutant in a copy of the project and return pytest's status."""
    selected = ["-k", mutant.keyword] if mutant.keyword else []
    options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command = [sys.executable, "-m", "pytest", *options, *selected, *mutant.tests]
    folders = {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    environment = {"NUMBA_CACHE_DIR": str(folder / "compiled"), **os.environ, **folders}
    run = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, check=False, text=True, timeout=SECONDS
    )
    return run.returncode


def require_passing(mutant: Mutant, folder: Path, passing: set[tuple]) -> None:
    """Require that the tests pass without the mutant: else they fail for another reason. Raises `MutantError`."""
    selection = mutant.tests, mutant.keyword
    if selection in passing:
        return
    status = run_tests(mutant, folder)
    if status == NO_TESTS:
        raise MutantError(f"no test of {', '.join(mutant.tests)} is selected by -k {mutant.keyword!r}; expected some")
    if status:
        raise MutantError(f"{', '.join(mutant.tests)} fail without the mutant; expected that they pass")
    passing.add(selection)


def verdict_of(mutant: Mutant, folder: Path, passing: set[tuple]) -> str:
    """Return `killed`, `survived`, or why the mutant says nothing."""
    path = folder / mutant.file
    try:
        changed = mutant.changed(folder)
        require_passing(mutant, folder, passing)
    except MutantError as error:
        return str(error)
    whole = path.read_text(encoding="utf-8")
    path.write_text(changed, encoding="utf-8")
    try:
        return "killed" if run_tests(mutant, folder) else "survived"
    except subprocess.TimeoutExpired:
        return "killed (time out)"
    finally:
        path.write_text(whole, encoding="utf-8")


def main() -> int:
    """Try the mutants that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description="Check that the tests find errors.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="mutants of tests/mutants/mutants.toml; default: all")
    try:
        mutants = select(load(), parser.parse_args().names)
    except MutantError as error:
        print(error, file=sys.stderr)
        return 1
    alive: list[str] = []
    passing: set[tuple] = set()
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        folder = Path(name)
        copy_project(folder)
        for mutant in mutants:
            verdict = verdict_of(mutant, folder, passing)
            print(f"{mutant.name}: {verdict}", flush=True)
            if not verdict.startswith("killed"):
                alive.append(mutant.name)
    print(f"{len(mutants) - len(alive)} of {len(mutants)} mutants killed.")
    if alive:
        print(f"Not killed. To try them again:\npython -m tests.mutants {' '.join(alive)}")
    return int(bool(alive))


if __name__ == "__main__":
    sys.exit(main())
