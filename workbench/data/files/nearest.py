"""The file that somebody may have meant who named one that is not there."""

import difflib
import os
from collections.abc import Iterable
from pathlib import Path

LEAST_ALIKE = 0.75
"""Likeness of two file names, from 0 to 1 as `difflib` has it, from which on one may be meant by the other."""


def nearest_file(path: str | os.PathLike, names: Iterable[str] = ()) -> str:
    """Return the question whether a file next to `path`, or one of `names`, was meant, a blank in front; "" if none."""
    try:
        files = os.listdir(Path(path).expanduser().absolute().parent)
    except (OSError, ValueError, RuntimeError):
        files = []
    known = {name: str(Path(path).with_name(name)) for name in files if not name.startswith(".")}
    meant = {name.lower(): name for name in [*names, *known]}
    near = difflib.get_close_matches(Path(path).name.lower(), meant, 1, LEAST_ALIKE)
    name = meant[near[0]] if near else ""
    return f" Did you mean {known.get(name, name)!r}?" if name else ""
