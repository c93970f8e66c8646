"""`make test` on a machine that has nothing but what it installs: each file of tests can be collected there."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.support.clocks import SECONDS

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
OTHERS = {"vowpalwabbit", "implicit", "torch", "tensorflow", "keras", "anndata", "binsparse", "cupy", "zarr"}
"""Modules of the extras that `make test` does not install."""

WITHOUT = """
import importlib.machinery, sys

class Finder(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        others = {others}
        return None if name.partition(".")[0] in others else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(importlib.machinery.PathFinder)] = Finder
import pytest
sys.exit(pytest.main(["-p", "no:xdist", "-p", "no:cacheprovider", "-qq", "--collect-only", *{folders}]))
"""


IMPORTS = re.compile(r'importorskip\("(torch|tensorflow)"|^import torch$|support\.(of_tensorflow|torch_training)', re.M)


def test_files_that_import_frameworks_are_kept_together_and_those_named_are_there(request):
    conftest = request.config.pluginmanager.get_plugin(str(ROOT / "tests" / "conftest.py"))
    files = {conftest._short_name(path): path for path in (ROOT / "tests").glob("**/test_*.py")}
    importing = {name for name, path in files.items() if IMPORTS.search(path.read_text(encoding="utf-8"))}
    assert len(importing) > 10
    assert importing - {"project/collection"} <= conftest.LOAD_FRAMEWORKS
    assert conftest.LOAD_FRAMEWORKS | set(conftest.LONGEST) <= set(files)


def test_each_module_of_an_extra_that_tests_do_without_is_named_here():
    installed = {text.split(">")[0] for name in ("lab", "dev") for text in EXTRAS[name]}
    others = {text.split(">")[0] for name in ("rivals", "exchange", "peers") for text in EXTRAS[name]}
    assert {name.removesuffix("-cpu") for name in others - installed} == OTHERS - {"keras", "cupy"}


NAMED = re.compile(r"(?:sparse-workbench|'\.)\[([a-z][a-z0-9,_-]*)\]| \(or \[([a-z0-9]+)\]\)")
"""Extras in an install command: sparse-workbench[lab,peers], '.[lab]', and a second one as in (or [cuda13])."""


def unknown_extras(text: str) -> set[str]:
    """Extras named in install commands that `pyproject.toml` does not have."""
    return {extra for found in NAMED.finditer(text) for extra in "".join(filter(None, found.groups())).split(",")} - {
        *EXTRAS
    }


def test_every_extra_that_code_or_docs_name_exists():
    folders = ("changes", "docs", "kernels", "notebooks", "tests", "workbench")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*")] + list(ROOT.glob("*"))
    kinds = {".py", ".md", ".ipynb", ".toml"}
    paths = [path for path in paths if path.suffix in kinds or path.name == "Makefile"]
    texts = {path: path.read_text(encoding="utf-8") for path in paths if path != Path(__file__)}
    assert sum(bool(NAMED.search(text)) for text in texts.values()) > 15
    assert not {path: names for path, text in texts.items() if (names := unknown_extras(text))}
    assert unknown_extras("pip install 'sparse-workbench[lab,competitors]' (or [cuda14])") == {"competitors", "cuda14"}


def test_extras_that_readers_and_writers_ask_for_exist():
    from workbench.data import exports

    asked = re.compile(r"import_optional\([^,]+, \"(\w+)\"")
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "workbench").rglob("*.py")]
    named = {extra for text in texts for extra in asked.findall(text)}
    named |= {kind.extra for kind in map(exports.get, exports.names()) if kind.package}
    assert "exchange" in named <= set(EXTRAS)


def test_tests_are_collected_without_the_frameworks():
    code = WITHOUT.format(others=OTHERS, folders=["tests/benchmarks", "tests/bridges", "tests/cluster"])
    came = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert came.returncode == 0, came.stdout[-2000:] + came.stderr[-2000:]
