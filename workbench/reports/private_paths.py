"""Paths in what is shared, such as reports: files by name, home folders as ~; run folders keep the whole paths."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath
from typing import Any

from workbench import settings

FILES = tuple(setting.name for setting in settings.SETTINGS if setting.is_file)
"""Settings, and columns of records, that are paths of files."""
HOMES = re.compile(rf"(?:{re.escape(str(Path.home()))}|/(?:home|Users)/[^/\\s]+|/root)(?=/)")


def file_names(paths: Iterable[str]) -> dict[str, str]:
    """Return {path: its shortest end that no other path has} of absolute paths, longest first.

    >>> file_names(["/home/me/a/x.csv", "/home/me/b/x.csv", "/data/y.csv", "z.csv"])
    {'/home/me/a/x.csv': 'a/x.csv', '/home/me/b/x.csv': 'b/x.csv', '/data/y.csv': 'y.csv'}
    """
    parts = {path: PurePath(path).parts for path in paths if PurePath(path).is_absolute()}
    names = {}
    for path in sorted(parts, key=len, reverse=True):
        others = [other for other in parts.values() if other != parts[path]]
        count = 1
        while count < len(parts[path]) and any(other[-count:] == parts[path][-count:] for other in others):
            count += 1
        names[path] = "/".join(parts[path][-count:]).lstrip("/") or path
    return names


def paths_of(records: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the paths of files that records were measured on."""
    return {record[name] for record in records for name in FILES if isinstance(record.get(name), str)}


def hide_folders(value: Any, names: Mapping[str, str]) -> Any:
    """Return a JSON value in which paths, also within texts, are as in `names`, and home folders are ~.

    >>> hide_folders({"reason": ["/home/me/x.csv is empty"]}, {"/home/me/x.csv": "x.csv"})
    {'reason': ['x.csv is empty']}
    >>> hide_folders("/home/me/.cache is full", {})
    '~/.cache is full'
    """
    if isinstance(value, str):
        if "/" in value:
            for path, name in names.items():
                value = value.replace(path, name)
            for path in names:
                value = value.replace(str(PurePath(path).parent) + "/", "")
            value = HOMES.sub("~", value)
        return value
    if isinstance(value, dict):
        return {name: hide_folders(one, names) for name, one in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], str | dict | list):
        return [hide_folders(one, names) for one in value]
    return value
