"""What `workbench data list` shows, kept in the cache folder: to import every reader takes longer than to show them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import workbench
from workbench.data.content import cache_folder

FILE = "sources.json"


def sources() -> list[dict[str, Any]]:
    """Return the facts of each data set: name, parameters with defaults (None: none), origin, licence."""
    state, file = list(_state()), cache_folder() / FILE
    try:
        stored = json.loads(file.read_text(encoding="utf-8"))
        if stored["state"] == state:
            return stored["sources"]
    except (OSError, ValueError, KeyError, TypeError):  # none, or damaged: it is written anew
        pass
    described = json.loads(json.dumps(_described()))
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_suffix(".new")
        new.write_text(json.dumps({"state": state, "sources": described}), encoding="utf-8")
        new.rename(file)
    except OSError:  # a folder that cannot be written: every call takes the time of the first
        pass
    return described


def _state() -> Iterator[Any]:
    """Yield the version, and path, size and time of every file of `workbench.data`: other files, other facts."""
    yield workbench.__version__
    for file in sorted((Path(workbench.__file__).parent / "data").rglob("*.py")):
        status = file.stat()
        yield [str(file), status.st_size, status.st_mtime_ns]


def _described() -> list[dict[str, Any]]:
    """Return the facts of each data set, from the readers themselves."""
    import inspect

    from workbench.data import contract

    facts = []
    for source in map(contract.get, contract.names()):
        needed = [name for name, default in source.parameters.items() if default is inspect.Parameter.empty]
        defaults = {name: default for name, default in source.parameters.items() if name not in needed}
        known = {"name": source.name, "needs": needed, "parameters": defaults}
        facts.append(known | {"origin": source.origin, "licence": source.licence})
    return facts
