"""NVIDIA's runtime compiler, which needs neither a GPU nor a driver, through ctypes."""

import ctypes
import functools
import importlib.metadata
from pathlib import Path

from tests.support import cuda_resources
from tests.support.cuda_resources import Resources

PACKAGES = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12")


class CompileError(Exception):
    """What the compiler said."""


@functools.cache
def library_path() -> Path | None:
    """The compiler's library in this environment, or None."""
    for package in PACKAGES:
        try:
            files = importlib.metadata.files(package) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        for file in files:
            if file.name.startswith("libnvrtc.so"):
                return Path(str(file.locate()))
    return None


@functools.cache
def _library() -> ctypes.CDLL:
    for builtins in library_path().parent.glob("libnvrtc-builtins.so*"):
        ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)  # some versions do not look beside themselves
    library = ctypes.CDLL(str(library_path()))
    library.nvrtcDestroyProgram.argtypes = [ctypes.POINTER(ctypes.c_void_p)]
    return library


def version() -> tuple[int, int]:
    """Of the compiler."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return major.value, minor.value


def _text(program: ctypes.c_void_p, what: str) -> str:
    size = ctypes.c_size_t()
    getattr(_library(), f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(_library(), f"nvrtcGet{what}")(program, text)
    return text.raw.rstrip(b"\0").decode("latin1")


def resources(text: str, names: tuple[str, ...], options: tuple[str, ...]) -> dict[str, Resources]:
    """What each of the kernels `names` of a program takes once it is machine code; raises `CompileError`."""
    program, library = ctypes.c_void_p(), _library()
    if library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernels.cu", 0, None, None):
        raise CompileError("the program was not made")
    try:
        for name in names:
            library.nvrtcAddNameExpression(program, name.encode())
        options = (*options, "--ptxas-options=-v")
        given = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
        if library.nvrtcCompileProgram(program, len(options), given):
            raise CompileError(_text(program, "ProgramLog"))
        found = cuda_resources.of_log(_text(program, "ProgramLog"))
        return {name: found[_symbol(program, name)] for name in names}
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _symbol(program: ctypes.c_void_p, name: str) -> str:
    symbol = ctypes.c_char_p()
    if _library().nvrtcGetLoweredName(program, name.encode(), ctypes.byref(symbol)) or symbol.value is None:
        raise CompileError(f"the program has no kernel {name}")
    return symbol.value.decode()
