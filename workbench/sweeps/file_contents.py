"""Content of the files that a sweep measures: a part of the keys of its records, compared again around every trial."""

from typing import NamedTuple, final

from workbench import data
from workbench.data import content
from workbench.sweeps.problem import OF_FILE, is_synthetic, parameters_of_file
from workbench.sweeps.spec import Cell

NOT_READ = "not read"
"""Content of large files in plans that are made without reading them: no record has a key with it."""


class DataChangedError(RuntimeError):
    """A data file whose content changed while a sweep measured it."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} changed while the sweep ran. The records of its content before stay; that of the trial at work is "
            "left out."
        )


class _Seen(NamedTuple):
    states: content.States
    hash: str


@final
class Contents:
    """Content of the files of configurations; files that several configurations read are read once.

    With `is_quick`, files that take longer than a moment are not read: their content is `NOT_READ` unless it is stored.
    """

    def __init__(self, is_quick: bool = False) -> None:
        self._is_quick = is_quick
        self._seen: dict[tuple, _Seen] = {}

    def of(self, cell: Cell) -> str:
        """Return the hash of the content of the files that a configuration reads.

        "" if it reads none, or one is missing.
        """
        if is_synthetic(cell.dataset):
            return ""
        name = _name(cell)
        if name not in self._seen:
            self._seen[name] = self._read(cell)
        return self._seen[name].hash

    def _read(self, cell: Cell) -> _Seen:
        """Return the states and the content hash of a configuration's files."""
        states = content.states_of(_files(cell))
        stored = content.stored_hash(states)
        if stored is None:
            stored = NOT_READ if self._is_quick and not content.is_quick(states) else content.hash_of(states)
        return _Seen(states, stored)

    def require_unchanged(self, cell: Cell) -> None:
        """Raise `DataChangedError` if the files do not hold what they held when `of` was called first.

        Files in the same state are not read; a file that was written again with the same content is accepted.
        """
        hash_before = self.of(cell)
        if is_synthetic(cell.dataset):
            return
        states = content.states_of(_files(cell))
        if not (name := content.first_changed_file(self._seen[_name(cell)].states, states)):
            return
        if content.hash_of(states) != hash_before:
            raise DataChangedError(name)
        self._seen[_name(cell)] = _Seen(states, hash_before)


def _name(cell: Cell) -> tuple:
    """Return the settings that name the files of a configuration, as a tuple."""
    return cell.dataset, *(getattr(cell, name) for name in OF_FILE)


def _files(cell: Cell) -> content.Paths:
    """Return the files that a configuration reads."""
    return data.get(cell.dataset).files(**parameters_of_file(cell.model_dump()))
