"""Arguments of an executor from outside, by name, and the check of sparse arrays."""

from collections.abc import Container, Iterator, Mapping
from typing import TYPE_CHECKING, Any, final

from workbench import formats
from workbench.executor.steps import BindError
from workbench.formats import RowSparse, enter
from workbench.graph import Facts

if TYPE_CHECKING:
    from workbench.executor.run import Executor


def entered(value: Any, name: str) -> Any:
    """An array for `name`, checked (`FormatError`): whoever gave it may have changed it since it was last read."""
    try:
        return enter(value)[1]
    except formats.FormatError as error:
        error.add_note(f"This is {name} of the graph.")
        raise


def _fixed_places(x: Any) -> tuple | None:
    """The shape and indices of a sparse array where nobody can write to these, as those of weights are left by us."""
    if isinstance(x, RowSparse):
        indices: tuple = (x.indices,)
    elif getattr(x, "format", None) in ("csr", "csc"):
        indices = (x.indptr, x.indices)
    else:
        return None
    are_fixed = all(not array.flags.writeable and array.base is None for array in indices)
    return (x.shape, *indices) if are_fixed else None


@final
class Outside:
    """The sparse arrays of an executor that came from outside, by slot, which are checked before each pass that reads
    them; weights in row_sparse, csr and csc whose indices are the same as before, and cannot be written to, are not:
    a step that touches few rows would pay for all that are stored."""

    def __init__(self, names: dict[int, str]) -> None:
        self.names = names
        self.checked: dict[int, Any] = {}

    def enter(self, slot: int, value: Any, name: str) -> Any:
        """An array for a slot, checked."""
        value = entered(value, name)
        self.checked[slot] = _fixed_places(value)
        return value

    def again(self, values: list, taken: Container[int] = ()) -> dict[int, Any]:
        """Arrays held in the slots, but for the slots `taken`, checked."""
        return {
            slot: self.enter(slot, values[slot], name)
            for slot, name in self.names.items()
            if slot not in taken and not self._is_settled(slot, values[slot])
        }

    def _is_settled(self, slot: int, value: Any) -> bool:
        before, now = self.checked.get(slot), _fixed_places(value)
        if before is None or now is None or before[0] != now[0]:
            return False
        same = all(one is other for one, other in zip(before[1:], now[1:], strict=True))
        values = value.values if isinstance(value, RowSparse) else value.data
        return same and values.shape[0] == now[-1].size


@final
class Released:
    """The arguments whose arrays an executor has let go of: `names` by slot, until they come again."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.without_rows: dict[int, Any] = {}

    def let_go(self, values: list, slot: int, facts: Facts) -> None:
        """Put an array without rows in the place of that in the slot."""
        if slot not in self.without_rows:
            known = facts.complete
            self.without_rows[slot] = formats.zeros((0, *known.shape[1:]), known.format, known.dtype)
        values[slot] = self.without_rows[slot]
        self.names[slot] = facts.name

    def take_back(self, arrays: Container[int]) -> None:
        """Refuse a call without them (`BindError`)."""
        if missing := [name for slot, name in self.names.items() if slot not in arrays]:
            raise BindError(
                f"The arrays of {', '.join(missing)} were let go of by release; give them to forward again."
            )
        self.names.clear()


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
