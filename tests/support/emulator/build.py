"""Compiles CUDA sources for the host, once for each text, into a cache folder."""

import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kernels.gpu.source import Source

HERE = Path(__file__).parent
CACHE = Path(os.environ.get("NUMBA_CACHE_DIR") or HERE.parents[2] / ".pytest_cache") / "emulator"
"""Next to the compiled kernels in NUMBA_CACHE_DIR if it is set, else within this checkout."""
FLAGS = ("-std=c++17", "-Og", "-fPIC", "-fno-strict-aliasing", "-ffp-contract=off", "-Wall", "-Wextra")
FLAGS += (
    "-Wno-unknown-pragmas",
    "-Wno-maybe-uninitialized",
    "-Wno-unused-function",
    "-Wno-unused-parameter",
    "-Werror",
)
TOLD = ("-fsanitize=thread",)
"""Kernels call the runtime before each access; linked without it, so that the functions are ours."""
KERNEL = """
extern "C" void body_{number}(void** args) {{ emulator::call(&{name}, args); }}
extern "C" void kinds_{number}(char* letters) {{ emulator::kinds(&{name}, letters); }}
"""


class BuildError(Exception):
    """What g++ said about a source."""


def compiler() -> str | None:
    """The path of g++, or None."""
    return shutil.which("g++")


def compiled(text: str, name: str, flags: tuple[str, ...] = TOLD) -> Path:
    """The shared library of a C++ text; `name` is for people."""
    headers = [header.read_text() for header in sorted(HERE.glob("*.h"))]
    key = hashlib.sha256("\n".join((text, *headers, *FLAGS, *flags)).encode()).hexdigest()[:20]
    library = CACHE / f"{name}-{key}.so"
    if not library.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        unlinked, made = (library.with_suffix(f".{os.getpid()}.{kind}") for kind in ("o", "so"))
        command = [compiler() or "g++", *FLAGS, *flags, f"-I{HERE}", "-x", "c++", "-", "-c", "-o", str(unlinked)]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BuildError(f"g++ refuses {name}:\n{done.stderr[:4000]}")
        subprocess.run([command[0], "-shared", str(unlinked), "-o", str(made)], check=True)
        unlinked.unlink()
        made.replace(library)
    return library


@functools.cache
def runtime() -> ctypes.CDLL:
    """The fibers; loaded before any kernel, which take their symbols from it."""
    library = ctypes.CDLL(compiled((HERE / "runtime.cpp").read_text(), "runtime", ("-O2",)), mode=ctypes.RTLD_GLOBAL)
    pointers = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
    library.emulator_watch.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
    library.emulator_run.argtypes = [ctypes.c_char_p, ctypes.c_uint, ctypes.c_uint, ctypes.c_uint64, *pointers]
    return library


def host_text(source: Source) -> str:
    """The source as host code, with a function to call for each kernel that it names."""
    kernels = [KERNEL.format(number=number, name=name) for number, name in enumerate(source.names)]
    return "".join(('#include "cuda.h"\n', source.text, *kernels))


@functools.cache
def library(source: Source) -> ctypes.CDLL:
    """The compiled source."""
    runtime()
    return ctypes.CDLL(compiled(host_text(source), source.title))


def build_all(sources: list[Source]) -> None:
    """Compile every source that is not in the cache, two at a time."""
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda source: compiled(host_text(source), source.title), sources))
