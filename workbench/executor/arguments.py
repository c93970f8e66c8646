"""What comes into an executor from outside: the arguments by name, and the check of sparse arrays."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, final

from workbench import formats
from workbench.formats import enter

if TYPE_CHECKING:
    from workbench.executor.run import Executor


def entered(value: Any, name: str) -> Any:
    """An array for `name`, checked (`FormatError`): whoever gave it may have changed it since it was last read."""
    try:
        return enter(value)[1]
    except formats.FormatError as error:
        error.add_note(f"This is {name} of the graph.")
        raise


@final
class Arguments(Mapping):
    """The arguments' arrays by name. `args["w"][:] = value` and `args["w"] = value` both write into the array."""

    def __init__(self, executor: "Executor") -> None:
        self._executor = executor

    def __getitem__(self, name: str) -> Any:
        return self._executor.values[self._executor.slot_of(name)]

    def __setitem__(self, name: str, value: Any) -> None:
        formats.assign(self[name], value)

    def __iter__(self) -> Iterator[str]:
        return iter(self._executor.known)

    def __len__(self) -> int:
        return len(self._executor.known)

    def __repr__(self) -> str:
        return f"Arguments({dict(self)!r})"
