"""Another package `kernels` in our place: the first import says so, and what to do; so does every command."""

import subprocess
import sys
from pathlib import Path

import pytest

from workbench.command import doctor

ROOT = Path(__file__).parents[2]


def first(folder: Path, code: str) -> subprocess.CompletedProcess:
    """Run code that finds what is in `folder` before all else."""
    code = f"import sys\nsys.path[:0] = [{str(folder)!r}, {str(ROOT)!r}]\n{code}"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=folder)


@pytest.mark.parametrize("file", ["kernels.py", "kernels/__init__.py"])
@pytest.mark.parametrize(
    "code",
    [
        "import workbench",
        "import kernels, workbench.formats",
        "from workbench.command.cli import main; main(['doctor'])",
    ],
)
def test_another_kernels_is_named_with_what_to_do(tmp_path: Path, file: str, code: str) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text('"""Somebody else\'s."""\n')
    done = first(tmp_path, code)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith(
        "ImportError: Sparse Workbench has a package named `kernels`; another one stands in its place:"
    )
    assert str(tmp_path / file) in last
    assert "an environment of its own: python -m venv fresh && fresh/bin/pip install sparse-workbench" in last


def test_our_own_is_let_in_from_anywhere(tmp_path: Path) -> None:
    assert first(tmp_path, "import workbench, kernels; kernels.get('csr_dense')").stderr == ""


def test_doctor_tells_which_kernels_these_are() -> None:
    (finding,) = doctor._entries()
    assert finding.found.endswith(f"from {ROOT / 'kernels'}")
    assert " kernels, " in finding.found
    assert finding.advice == ""
