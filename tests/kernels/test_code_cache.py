"""Compiled code on disk: what two processes save at one moment is all there, and each row loop has an index."""

import contextlib
import errno
import fcntl
import json
import os
import subprocess
import sys
import threading
import types
from collections.abc import Callable
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.codegen import JITCodeLibrary
from numba.extending import intrinsic, overload

from kernels import code_cache
from kernels._compat.numba_internals import PartLibrary
from kernels.code_cache import CodeCache, digest_of, inlined, njit
from kernels.vector.gather import RowLoop
from tests.support.clocks import SECONDS

VERSIONS = [(numba.int64,), (numba.float64,)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    return tmp_path


def _twice(x):
    return 2 * x


def found(cache: type[FunctionCache], monkeypatch: pytest.MonkeyPatch, seconds: float) -> list[tuple]:
    """The versions on disk after two caches have saved one each, neither its index before the other has read it, for
    which it waits so many seconds."""
    function, save_index, meet = numba.njit(VERSIONS)(_twice), IndexDataCacheFile._save_index, threading.Barrier(2)

    def late(self, overloads):
        with contextlib.suppress(threading.BrokenBarrierError):
            meet.wait(seconds)
        save_index(self, overloads)

    monkeypatch.setattr(IndexDataCacheFile, "_save_index", late)
    calls = [(version, function.overloads[version]) for version in VERSIONS]
    savers = [threading.Thread(target=cache(_twice).save_overload, args=call) for call in calls]
    for saver in savers:
        saver.start()
    for saver in savers:
        saver.join()
    kept = [cache(_twice).load_overload(version, function.targetctx) for version in VERSIONS]
    return [version.signature.args for version in kept if version]


@pytest.mark.usefixtures("folder")
def test_versions_that_are_saved_at_one_moment_are_all_there(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(CodeCache, monkeypatch, 0.2) == VERSIONS


@pytest.mark.usefixtures("folder")
def test_without_the_lock_a_version_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(found(FunctionCache, monkeypatch, SECONDS)) == 1


def test_code_is_made_once_and_then_read(folder: Path) -> None:
    for misses in (1, 0):
        function = njit(nogil=True)(_twice)
        assert (function(2), function(3)) == (4, 6)
        assert sum(function.stats.cache_misses.values()) == misses
    assert len(list(folder.rglob("*.nbi"))) == 1


MANY_THINGS = """
import json, sys
import numba
import numpy as np
from kernels.code_cache import njit

@njit(nogil=True)
def many(x, limit):
    if limit < 0:
        raise ValueError("below zero")
    rows = np.empty((3, 3), x.dtype)
    for row in range(3):
        rows[row] = x
    return np.dot(rows, rows), hash("text") != hash(limit), np.exp(x).sum(), len({limit, 3})

def call(*args):
    try:
        return [item.tolist() if isinstance(item, np.ndarray) else item for item in many(*args)]
    except ValueError as error:
        return str(error)

answers = [call(np.ones(3), limit) for limit in (2, -1)]
imported = "numba.cpython.printimpl" in sys.modules
later = float(numba.njit(lambda x: x.max() + len(str(x.size)))(np.ones(3)))  # is compiled
loads = sum(many.stats.cache_hits.values())
print(json.dumps({"answers": answers, "later": later, "imported": imported, "loads": loads}))
"""


def test_code_that_is_loaded_needs_nothing_that_code_is_compiled_from(tmp_path: Path) -> None:
    """It allocates, raises, hashes and calls BLAS as before; what is compiled after it is right too."""
    file = tmp_path / "many_things.py"
    file.write_text(MANY_THINGS, encoding="utf-8")
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    compiled, loaded = (
        json.loads(
            subprocess.run(
                [sys.executable, str(file)], env=environment, capture_output=True, text=True, check=True, cwd=tmp_path
            ).stdout
        )
        for _ in range(2)
    )
    assert (compiled["loads"], compiled["imported"]) == (0, True)
    assert (loaded["loads"], loaded["imported"]) == (1, False)
    assert loaded["answers"] == compiled["answers"]
    assert compiled["answers"][1] == "below zero"
    assert loaded["later"] == compiled["later"] == 2.0


def _nothing(lane, u, out):
    pass


def test_each_row_loop_has_an_index_of_its_own(folder: Path) -> None:
    loop = RowLoop(_nothing)
    for width in (1, 16):
        loop[width, 4](1, 1, width, np.zeros((1, width), np.float32))
    assert len(list(folder.rglob("*.nbi"))) == 2


def compiled_from(folder: Path, callee: str = "x + 1", number: int = 3, options: str = "nogil=True") -> tuple:
    """What a function of a module gives that calls another and reads a number, and how often it was compiled."""
    text = f"""
from kernels.code_cache import njit

NUMBER = {number}


@njit({options})
def inner(x):
    return {callee}


@njit({options})
def outer(x):
    return NUMBER * inner(x)
"""
    path = folder / "some_kernel.py"
    path.write_text(text, encoding="utf-8")
    module = types.ModuleType("some_kernel")
    exec(compile(text, str(path), "exec"), vars(module))  # an import may take the byte code of a moment ago
    return module.outer(1), sum(module.outer.stats.cache_misses.values())


@pytest.mark.parametrize("change", [{"callee": "x + 2"}, {"number": 4}, {"options": "nogil=True, boundscheck=True"}])
def test_code_is_made_anew_where_what_it_refers_to_changed(folder: Path, tmp_path: Path, change: dict) -> None:
    assert compiled_from(tmp_path) == (6, 1)
    assert compiled_from(tmp_path) == (6, 0)
    result, misses = compiled_from(tmp_path, **change)
    assert misses == 1
    assert result == change.get("number", 3) * (3 if "callee" in change else 2)
    assert compiled_from(tmp_path) == (6, 0)  # the first version is still there


def test_a_docstring_is_no_part_of_the_code_unless_the_code_reads_it() -> None:
    def digest(docstring: str, body: str) -> str:
        made: dict = {}
        exec(f"def function(x):\n    {docstring!r}\n    {body}", made)  # as a file with that text would define it
        return digest_of(made["function"])

    assert digest("Some text.", "return x + 1") == digest("Other text.", "return x + 1")
    assert digest("Some text.", "return x + 1") != digest("Some text.", "return x + 2")
    assert digest("a", "return x + 'b'") != digest("a", "return x + 'c'")
    assert digest("a", "return x + 'a'") != digest("b", "return x + 'b'")
    assert digest("a", "return [text for text in ('a', x)]") != digest("a", "return [text for text in ('b', x)]")


def test_what_happened_in_the_process_before_does_not_hide_the_code(folder: Path) -> None:
    """Code may be written by programs that a dictionary holds, with whatever they refer to: `lanes.programs`."""
    for misses in (1, 0):
        outer = closing(njit(nogil=True)(doubled_by_a_program))
        assert (outer(1), outer(2)) == (2, 4)
        assert sum(outer.stats.cache_misses.values()) == misses
        PROGRAMS["another"] = (number for number in range(3))  # which nothing can pickle


PROGRAMS: dict[str, object] = {}


@intrinsic
def doubled_by(typing, value):
    """Twice the value, by code that looks at `PROGRAMS` while it is made."""

    def codegen(context, builder, signature, args):
        assert "absent" not in PROGRAMS
        return builder.add(args[0], args[0])

    return value(value), codegen


def doubled_by_a_program(x):
    return doubled_by(x)


def closing(inner: Callable) -> Callable:
    @njit(nogil=True)
    def outer(x):
        return inner(x)

    return outer


def test_checkouts_in_other_folders_share_a_cache(folder: Path, tmp_path: Path) -> None:
    places = [tmp_path / "one", tmp_path / "two"]
    for place in places:
        place.mkdir()
    assert [compiled_from(place)[1] for place in places] == [1, 0]


def test_what_has_no_digest_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="cannot be kept: reads refers to THING, a object, which has no digest"):
        digest_of(reads)


THING = object()


def reads() -> object:
    return THING


@pytest.mark.usefixtures("folder")
def test_several_may_load_at_once_and_nobody_saves_meanwhile() -> None:
    cache = CodeCache(_twice)
    with (
        cache._lock(fcntl.LOCK_SH),
        cache._lock(fcntl.LOCK_SH),
        (Path(cache.cache_path) / "numba.lock").open("w") as lock,
        pytest.raises(BlockingIOError),
    ):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_an_inlined_function_has_no_machine_code_of_its_own(folder: Path) -> None:
    @inlined
    def inner(x):
        return 3 * x

    @inlined
    def middle(x):
        return inner(x) + inner(x)

    @njit()
    def outer(x):
        return middle(x) + 1

    assert [outer(2), outer(0.5)] == [13, 4.0]
    for function in (inner, middle):
        for version in function.overloads.values():
            assert isinstance(version.library, PartLibrary)
            assert version.library.get_pointer_to_function(version.fndesc.llvm_func_name) == 0
    assert len(list(folder.rglob("*.nbi"))) == 1  # that of the outer one


def libraries_made(decorate: Callable, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many libraries of machine code are made for a function that calls one which an overload implements."""

    def half(x):
        raise NotImplementedError

    @overload(half)
    def _half(x):
        return lambda x: x / 2

    made, finalize = [], JITCodeLibrary._finalize_specific
    monkeypatch.setattr(JITCodeLibrary, "_finalize_specific", lambda self: made.append(self) or finalize(self))
    assert decorate(lambda x: half(x) + half(x + 1))(3) == 3.5
    return len(made)


@pytest.mark.usefixtures("folder")
def test_what_implements_a_call_is_compiled_as_a_part_of_the_function(monkeypatch: pytest.MonkeyPatch) -> None:
    assert libraries_made(njit(), monkeypatch) == 1


def test_numba_itself_makes_machine_code_of_what_implements_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    assert libraries_made(numba.njit, monkeypatch) == 2


@pytest.mark.usefixtures("folder")
def test_a_function_that_is_loaded_while_another_is_compiled_can_be_called() -> None:
    njit()(_twice)(2)
    inner = njit()(_twice)
    outer = njit()(lambda x: inner(x) + 1)
    assert outer(2) == 5
    assert sum(inner.stats.cache_hits.values()) == 1
    (version,) = inner.overloads.values()
    assert not isinstance(version.library, PartLibrary)
    assert inner(3) == 6


def test_an_inlined_function_refuses_what_numba_refuses() -> None:
    @inlined
    def wrong(x):
        return x.missing

    with pytest.raises(numba.TypingError, match="missing"):
        njit()(lambda x: wrong(x))(1.0)


@pytest.mark.parametrize("kind", ["a file", "missing and refused", "full disk", "damaged"])
def test_a_folder_that_cannot_be_used_is_told_and_the_code_runs(tmp_path, monkeypatch, kind):
    """Not the file that is read meanwhile is to blame."""
    folder = tmp_path / "cache"
    monkeypatch.setattr(numba.config, "CACHE_DIR", str("/proc/none" if kind == "missing and refused" else folder))
    monkeypatch.setattr(code_cache, "_warned", set())
    told = "Compiled code cannot be kept in .*, so each process compiles it again.\nSet NUMBA_CACHE_DIR to a folder"
    if kind == "a file":
        folder.touch()
    if kind == "damaged":
        njit()(_twice)(3)
        for path in folder.rglob("*.nbc"):
            path.write_bytes(path.read_bytes()[:10])
    if kind == "full disk":
        full = OSError(errno.ENOSPC, "No space left on device")
        monkeypatch.setattr(IndexDataCacheFile, "_save_index", lambda *_: (_ for _ in ()).throw(full))
    function = njit()(_twice)
    with pytest.warns(UserWarning, match=told) as warned:
        results = list(map(function, (3, 3.5)))
    assert results == [6, 7]
    assert len(warned) == 1
