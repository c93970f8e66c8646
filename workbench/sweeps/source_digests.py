"""Digests of the source files of configurations, kept in the cache folder as long as no source file changes.

To follow all imports takes most of a second, which each process that plans a sweep would spend anew.
"""

import contextlib
import functools
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from workbench import atomic_files
from workbench.data import content
from workbench.json_text import parsed
from workbench.measure import closure

SUFFIXES = (".py", ".pyi", ".toml", *closure.COMPILED)


def digest(roots: Iterable[str], apart: Iterable[str], compiled: bool) -> str:
    """Return what `Code.digest` of the installed code returns, computed once for a state of its source files."""
    key = closure.result_key([sorted(roots), sorted(apart), compiled])
    path, tree, digests = _kept()
    if key not in digests:
        digests[key] = closure.installed_code().digest(roots, apart, compiled)
        if _tree() == tree:  # no file has changed since the first question
            with contextlib.suppress(OSError):  # without a cache folder the next process computes it again
                path.parent.mkdir(parents=True, exist_ok=True)
                atomic_files.write(path, json.dumps({"tree": tree, "digests": digests}))
    return digests[key]


@functools.cache
def _kept() -> tuple[Path, str, dict[str, str]]:
    """Return the file of the digests, the state of the source files now, and the digests known of this state."""
    root = hashlib.sha256(str(closure.installed_code().root).encode()).hexdigest()[:16]
    path, tree = content.cache_folder() / f"sources-{root}.json", _tree()
    try:
        kept = parsed(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # none yet, or damaged
        kept = {}
    known = kept.get("digests") if isinstance(kept, dict) and kept.get("tree") == tree else None
    is_whole = isinstance(known, dict) and all(isinstance(each, str) for each in known.values())
    return path, tree, dict(known) if known and is_whole else {}


def _tree() -> str:
    """Return a hash of the names, sizes and times of all source files of the installed code."""
    root = closure.installed_code().root
    folders = [root / package for package in closure.OURS]
    files = sorted(file for folder in folders for file in folder.rglob("*") if file.suffix in SUFFIXES)
    return hashlib.sha256(repr(content.states_of(files)).encode()).hexdigest()
