"""A sentence of advice, with the cells that it rests on."""

from dataclasses import dataclass

from workbench.analysis.cells import Row


@dataclass(frozen=True)
class Said:
    """A sentence, and the keys of the cells whose rows it rests on."""

    text: str
    keys: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text


def keys_of(*rows: Row | None) -> tuple[str, ...]:
    """The keys of rows, each once, without those that are None."""
    return tuple(dict.fromkeys(row["key"] for row in rows if row))
