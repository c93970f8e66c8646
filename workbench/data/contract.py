"""The Source record, what a data set is made by, and its registry."""

import inspect
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.registry import Registry
from workbench.data.content import Paths
from workbench.data.dataset.record import Dataset
from workbench.data.dataset.row_blocks import RowBlocks
from workbench.data.errors import DataError
from workbench.formats.parts import Parts

MEANT = {
    "path": ", your file or folder",
    "labels": ", a file with a label for each row, which this data has not in itself",
}
"""Meanings of parameters that must be given, by name."""


def _nothing(**parameters: Any) -> str:
    return ""


def _no_files(**parameters: Any) -> Paths:
    return ()


@dataclass(frozen=True)
class Source:
    """One entry: `make(**parameters)` gives the data set, the same for the same parameters.

    `origin` and `licence` say where it comes from. `files(**parameters)` lists the files that are read, None for one
    that is not named; the hash of their content is part of the keys of cached copies and of records. `fingerprint`,
    called likewise, names whatever else the result depends on, such as a version. `gives` names what its data has for
    models that need more than X and labels (`models.NEEDS`): fields in `Dataset.facts`, a graph.
    `takes_folder` tells that its `path` may be a folder.
    `stored(path, labels)` gives what stands in the file, where the reader mends it: the `formats.parts.Parts` of the
    matrix, unchecked, with duplicates and order as they are, and the labels, None where none are named.
    `is_cached` is False where a copy would be no quicker to load than what is read.

    `blocks(**parameters)`, with the parameters of `make`, gives the same rows block by block, so that `convert` never
    holds them whole; None where `make` must have all of them.
    """

    name: str
    make: Callable[..., Dataset]
    origin: str
    licence: str
    files: Callable[..., Paths] = _no_files
    fingerprint: Callable[..., str] = _nothing
    gives: tuple[str, ...] = ()
    takes_folder: bool = False
    stored: Callable[..., tuple[Parts, np.ndarray | None]] | None = None
    blocks: Callable[..., RowBlocks] | None = None
    is_cached: bool = True

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters and their defaults; `inspect.Parameter.empty` marks one that must be given."""
        return {name: entry.default for name, entry in inspect.signature(self.make).parameters.items()}

    def complete(self, given: dict[str, Any]) -> dict[str, Any]:
        """All parameters, the missing ones with their defaults; unknown and missing names are refused (`DataError`)."""
        self.refuse_unknown(given)
        known = self.parameters
        complete = {**known, **given}
        if missing := [name for name, value in complete.items() if value is inspect.Parameter.empty]:
            needed = f"{self.name} needs the parameter {missing[0]!r}{MEANT.get(missing[0], '')}"
            raise DataError(f"{needed}; its parameters are {', '.join(known)}.")
        self._refuse_no_path(complete)
        return complete

    def _refuse_no_path(self, given: dict[str, Any]) -> None:
        """`DataError` for a value of a required path or file of labels that is no path."""
        for name in MEANT:
            is_required = self.parameters.get(name) is inspect.Parameter.empty
            if is_required and not isinstance(given[name], str | os.PathLike):
                what = "a path" if name == "path" else "the path of a file with a label for each row"
                raise DataError(f"{self.name}: {name} is {given[name]!r:.80}; expected {what}.")

    def refuse_unknown(self, given: Iterable[str]) -> None:
        """`DataError` for a name that is no parameter, with those that are."""
        known = self.parameters
        if unknown := [name for name in given if name not in known]:
            raise DataError(f"{self.name} has no parameter {unknown[0]!r}; its parameters are {', '.join(known)}.")


_sources: Registry[Source] = Registry("data set", ("workbench.data.sources",), DataError)
register, names, get, unavailable = _sources.register, _sources.names, _sources.get, _sources.unavailable
