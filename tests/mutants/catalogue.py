"""Deliberate errors in the code, each with the tests that must find it."""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("mutants.toml")


class MutantError(Exception):
    """A mutant that cannot be made; the message says why."""


@dataclass(frozen=True)
class Mutant:
    """One error: in `file` the one occurrence of `text` is replaced with `by`.

    `tests` are the files that must find it, `keyword` selects tests of them as pytest's -k does.
    """

    name: str
    file: str
    text: str
    by: str
    tests: tuple[str, ...]
    keyword: str = ""

    def changed(self, root: Path) -> str:
        """Return the content of the file with the error. Raises `MutantError` unless the text occurs exactly once."""
        path = root / self.file
        if not path.is_file():
            raise MutantError(f"{self.name}: there is no file {self.file}; expected the file that has {self.text!r}.")
        content = path.read_text(encoding="utf-8")
        if (count := content.count(self.text)) != 1:
            raise MutantError(f"{self.name}: {self.text!r} occurs {count} times in {self.file}; expected exactly once.")
        return content.replace(self.text, self.by)


def load(file: Path = FILE) -> list[Mutant]:
    """Read all mutants, in the order of the file."""
    entries = tomllib.loads(file.read_text(encoding="utf-8"))
    return [Mutant(name, **{**entry, "tests": tuple(entry["tests"])}) for name, entry in entries.items()]


def select(mutants: list[Mutant], names: Iterable[str]) -> list[Mutant]:
    """Select mutants by name, all without names. Raises `MutantError` for an unknown name."""
    known = {mutant.name: mutant for mutant in mutants}
    if unknown := [name for name in names if name not in known]:
        raise MutantError(f"Unknown mutants {', '.join(unknown)}. Expected some of: {', '.join(known)}.")
    return [known[name] for name in names] or mutants
