"""What each command imports before it answers: packages that it does not use are not loaded; modules are counted."""

import json
import subprocess
import sys

import pytest

ALWAYS_LATE = ("cupy", "dask", "torch", "tensorflow", "matplotlib", "ipywidgets", "sklearn", "pandas", "scipy.optimize")
COMPILED = ("numba", "scipy.sparse")
RUN = """
import contextlib, io, json, sys
from workbench.command import cli
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    cli.app(sys.argv[1:])
print(json.dumps(sorted(sys.modules)))
"""


def modules_after(tmp_path, *words):
    done = subprocess.run([sys.executable, "-c", RUN, *words], capture_output=True, text=True, check=True, cwd=tmp_path)
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    ("words", "most", "unused"),
    [
        (["--help"], 360, (*ALWAYS_LATE, *COMPILED, "numpy")),
        (["--version"], 295, (*ALWAYS_LATE, *COMPILED, "numpy")),
        (["sweep", "--help"], 460, (*ALWAYS_LATE, *COMPILED, "numpy")),
        (["status"], 370, (*ALWAYS_LATE, *COMPILED, "numpy")),
        (["data", "list"], 1010, ALWAYS_LATE),
        (["doctor"], 1190, ALWAYS_LATE),
        (["train", "uniform", "--rows=40", "--features=9", "--density=0.3", "--epochs=1"], 1400, ALWAYS_LATE),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_command_imports_no_more_than_it_uses(tmp_path, words, most, unused):
    loaded = modules_after(tmp_path, *words)
    assert sorted(loaded & set(unused)) == []
    assert len(loaded) <= most


def test_a_package_that_is_used_is_seen(tmp_path):
    assert {"numba", "scipy.sparse"} <= modules_after(tmp_path, "data", "list")
