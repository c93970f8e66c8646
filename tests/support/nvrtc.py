"""NVIDIA's runtime compiler, which needs neither a GPU nor a driver, through ctypes."""

import ctypes
import functools
import importlib.metadata
from pathlib import Path

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


def machine_code(text: str, names: tuple[str, ...], options: tuple[str, ...]) -> str:
    """The binary of a program with the kernels `names`, bytes as Latin-1; raises `CompileError`."""
    program, library = ctypes.c_void_p(), _library()
    if library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernels.cu", 0, None, None):
        raise CompileError("the program was not made")
    try:
        for name in names:
            library.nvrtcAddNameExpression(program, name.encode())
        given = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
        if library.nvrtcCompileProgram(program, len(options), given):
            raise CompileError(_text(program, "ProgramLog"))
        return _text(program, "CUBIN")
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))
