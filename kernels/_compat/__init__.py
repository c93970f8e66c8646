"""Private parts of libraries: the names of each library in one file here, and nowhere else.

A missing part raises ImportError that names the part, the version, and what to install. Versions are capped in
`pyproject.toml` at what is known to work; `ALLOWED` repeats the caps for the messages, and a test compares them.
"""

import importlib
from importlib.metadata import PackageNotFoundError, version
from typing import Any

ALLOWED = {"numba": ">=0.62,<0.69", "scipy": ">=1.15,<1.19", "cupy": ">=14.2,<15"}


def part(path: str) -> Any:
    """Return the module, or the name in a module, at `path`. Raises ImportError with what to install if it is missing.

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
    """Return the ImportError for the part `path`, such as "numba.core.x", that an installed library lacks."""
    library = path.partition(".")[0]
    allowed = ALLOWED[library]
    return ImportError(
        f"{library} {_version(library)} has no {path}, a part of its inside that is used here. Known to have it: "
        f"{library}{allowed}. Install one of these: pip install '{library}{allowed}'."
    )


def _version(library: str) -> str:
    """Return the installed version of a library, such as "0.61.2", else "of unknown version"."""
    module = importlib.import_module(library)
    try:
        return getattr(module, "__version__", None) or version(library)
    except PackageNotFoundError:
        return "of unknown version"
