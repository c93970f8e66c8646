"""Arrays passed to an executor by name, and the validation of sparse arrays."""

from collections.abc import Container, Iterator, Mapping
from typing import TYPE_CHECKING, Any, final

from workbench import formats
from workbench.executor.steps import BindError
from workbench.formats import RowSparse, validate
from workbench.graph import Facts

if TYPE_CHECKING:
    from workbench.executor.run import Executor


def validate_argument(value: Any, name: str) -> Any:
    """Validate an array for the argument `name`. Raises FormatError; the caller may have changed it since it was
    last read.
    """
    try:
        return validate(value)[1]
    except formats.FormatError as error:
        error.add_note(f"This is {name} of the graph.")
        raise


def _fixed_places(x: Any) -> tuple | None:
    """Return shape and index arrays of a sparse array if these are read-only, else None."""
    if isinstance(x, RowSparse):
        indices: tuple = (x.indices,)
    elif getattr(x, "format", None) in ("csr", "csc"):
        indices = (x.indptr, x.indices)
    else:
        return None
    are_fixed = all(not array.flags.writeable and array.base is None for array in indices)
    return (x.shape, *indices) if are_fixed else None


@final
class Slots(dict[str, int]):
    """Slots (positions) of arguments by name. Raises BindError for an unknown one."""

    def __missing__(self, name: str) -> int:
        raise BindError(f"There is no argument {name!r}; the arguments are {list(self)}.")


@final
class InputChecker:
    """Sparse arrays passed in by the caller, by slot, which are validated before each pass that reads them.

    Weights whose index arrays are the same read-only objects as before are not validated again: a step that reads few
    rows would pay for all stored ones.
    """

    def __init__(self, names: dict[int, str]) -> None:
        self.names = names
        self.checked: dict[int, Any] = {}

    def check(self, slot: int, value: Any, name: str) -> Any:
        """Validate the array of a slot and return it."""
        value = validate_argument(value, name)
        self.checked[slot] = _fixed_places(value)
        return value

    def recheck(self, values: list, taken: Container[int] = ()) -> dict[int, Any]:
        """Validate the arrays held in the slots except those in `taken`; return them by slot."""
        checked = {}
        for slot, name in self.names.items():
            if slot not in taken and not self._is_settled(slot, values[slot]):
                checked[slot] = self.check(slot, values[slot], name)
        return checked

    def _is_settled(self, slot: int, value: Any) -> bool:
        """Return whether the array of the slot has the same read-only indices as when it was validated."""
        before, now = self.checked.get(slot), _fixed_places(value)
        if before is None or now is None or before[0] != now[0]:
            return False
        same = all(one is other for one, other in zip(before[1:], now[1:], strict=True))
        values = value.values if isinstance(value, RowSparse) else value.data
        return same and values.shape[0] == now[-1].size


@final
class Released:
    """Arguments whose arrays an executor has released: `names` by slot, until they are passed again.

    `without_rows` are arrays without rows, by slot, that take the place of released ones.
    """

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.without_rows: dict[int, Any] = {}

    def add(self, slot: int, facts: Facts) -> None:
        """Make the array without rows for a slot."""
        known = facts.complete
        self.without_rows[slot] = formats.zeros((0, *known.shape[1:]), known.format, known.dtype)

    def require(self, arrays: Container[int]) -> None:
        """Raise BindError unless all released arguments are in `arrays`; then forget them."""
        if not all(map(arrays.__contains__, self.names)):
            missing = [name for slot, name in self.names.items() if slot not in arrays]
            raise BindError(
                f"The arrays of {', '.join(missing)} were let go of by release; give them to forward again."
            )
        self.names.clear()


@final
class Arguments(Mapping):
    """Mapping of the arguments' arrays by name. `args["w"][:] = value` and `args["w"] = value` both write into the
    array.
    """

    def __init__(self, executor: "Executor") -> None:
        self._executor = executor

    def __getitem__(self, name: str) -> Any:
        return self._executor.values[self._executor.slots[name]]

    def __setitem__(self, name: str, value: Any) -> None:
        formats.assign(self[name], value)

    def __iter__(self) -> Iterator[str]:
        return iter(self._executor.known)

    def __len__(self) -> int:
        return len(self._executor.known)

    def __repr__(self) -> str:
        return f"Arguments({dict(self)!r})"
