"""Private parts of libraries: what is missing is said, each library in one file, versions capped alike everywhere."""

import ast
import gc
import re
import tomllib
from pathlib import Path

import pytest
from numba import prange
from numba.extending import overload

from kernels import _compat
from kernels._compat import numba_internals
from kernels.code_cache import njit
from tests.support.processes import printed

ROOT = Path(__file__).parents[2]
INSIDE = re.compile(r"numba\.core|numba\.np|scipy.*\._\w|cupy.*\._\w")


def test_missing_part_is_named_with_the_version_and_what_to_install() -> None:
    with pytest.raises(
        ImportError, match=r"^scipy \d[\d.]+ has no scipy\.sparse\._sparsetools\.csr_nothing, .*"
    ) as caught:
        _compat.part("scipy.sparse._sparsetools.csr_nothing")
    assert f"pip install 'scipy{_compat.ALLOWED['scipy']}'" in str(caught.value)
    with pytest.raises(ImportError, match=r"^numba .* has no numba\.core\.nothing"):
        _compat.part("numba.core.nothing")


def test_competitors_of_a_scipy_without_these_parts_are_unavailable_and_all_else_is_there() -> None:
    code = """
import scipy.sparse._sparsetools as inside, kernels
del inside.coo_matvec
print(kernels.get("coo_dense").name)
try: kernels.get("scipy.coo_dense")
except kernels.KernelError as error: print(error)
"""
    name, refusal = printed(code).splitlines()
    assert name == "coo_dense"
    assert "Unknown kernel 'scipy.coo_dense'" in refusal
    assert re.search(r"scipy_sparse: .* has no scipy\.sparse\._sparsetools\.coo_matvec", refusal)


def test_versions_are_capped_as_the_messages_say() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    every = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    for library, allowed in _compat.ALLOWED.items():
        said = {re.sub(r"^[\w-]+", "", one) for one in every if re.match(rf"{library}\b", one)}
        assert said == {allowed}, library


def inside(source: str) -> set[str]:
    """Private parts that a source imports or names in a text."""
    if not any(library in source for library in _compat.ALLOWED):
        return set()
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " not in node.value:
            names.add(node.value)
    return {name for name in names if INSIDE.match(name)}


def test_private_parts_are_named_in_one_place() -> None:
    named = {}
    for package in ("kernels", "workbench"):
        for file in (ROOT / package).rglob("*.py"):
            if file.parent.name != "_compat" and (parts := inside(file.read_text(encoding="utf-8"))):
                named[file.name] = parts
    assert named == {}


def test_the_search_for_private_parts_can_fail() -> None:
    assert inside("from numba.core import cgutils") == {"numba.core.cgutils"}
    assert inside("from scipy.sparse import _sparsetools") == {"scipy.sparse._sparsetools"}
    assert inside("load('cupy._core._routines_linalg')") == {"cupy._core._routines_linalg"}


@pytest.mark.parametrize("options", [{}, {"parallel": True}], ids=["serial", "parallel"])
@pytest.mark.parametrize("is_on", [True, False])
def test_compiling_searches_for_no_garbage_and_leaves_the_collector_as_it_was(
    is_on: bool, options: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_collecting = []

    def doubled(value):
        return 2 * value

    @overload(doubled)
    def doubled_compiled(value):
        is_collecting.append(gc.isenabled())  # while its caller is compiled
        return lambda value: 2 * value

    def total(count):
        found = 0
        for k in prange(count):
            found += doubled(k)
        return found

    monkeypatch.setattr(numba_internals.config, "CACHE_DIR", str(tmp_path))
    was_on = gc.isenabled()
    (gc.enable if is_on else gc.disable)()
    try:
        assert njit(**options)(total)(4) == 12
        assert gc.isenabled() == is_on
    finally:
        (gc.enable if was_on else gc.disable)()
    assert set(is_collecting) == {False}
