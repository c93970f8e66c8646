"""Parts of libraries that these do not promise to keep: names of each in one file here, and nowhere else.

A part that is missing is an `ImportError` that says which, in which version, and what to install. Versions are capped
in `pyproject.toml` at what is known to work; `ALLOWED` repeats the caps for the messages, and a test compares them.
"""

import importlib
from importlib.metadata import PackageNotFoundError, version
from typing import Any

ALLOWED = {"numba": ">=0.62,<0.69", "scipy": ">=1.15,<1.19", "cupy": ">=14.2,<15"}


def part(path: str) -> Any:
    """The module, or the name in a module, that `path` leads to; `ImportError` with what to do where it is missing.

    >>> part("numba.core.cgutils.unpack_tuple").__name__
    'unpack_tuple'
    """
    module, _, name = path.rpartition(".")
    try:
        return importlib.import_module(path)
    except ImportError as error:
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            raise missing(path) from error


def missing(path: str) -> ImportError:
    """Error where a library lacks a part."""
    library = path.partition(".")[0]
    allowed = ALLOWED[library]
    return ImportError(
        f"{library} {_version(library)} has no {path}, a part of its inside that is used here. Known to have it: "
        f"{library}{allowed}. Install one of these: pip install '{library}{allowed}'."
    )


def _version(library: str) -> str:
    module = importlib.import_module(library)
    try:
        return getattr(module, "__version__", None) or version(library)
    except PackageNotFoundError:
        return "of unknown version"
