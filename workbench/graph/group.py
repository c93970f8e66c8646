"""Several symbols as one graph."""

from collections.abc import Iterable, Iterator
from typing import Any, NoReturn, final

from workbench.graph.nodes import GraphError, merged
from workbench.graph.symbol import Graph, Symbol


@final
class Group(Graph):
    """Several symbols as the outputs of one graph; by number, by name, or in turn."""

    __slots__ = ("symbols",)

    def __init__(self, symbols: Iterable[Graph]) -> None:
        parts = tuple(symbols)
        for part in parts:
            if not isinstance(part, Graph):
                raise GraphError(f"A group is of symbols; a {type(part).__name__} came.")
        heads = tuple(head for part in parts for head in part.heads)
        if not heads:
            raise GraphError("A group needs at least one symbol; none came.")
        merged(heads)
        object.__setattr__(self, "symbols", heads)

    @property
    def heads(self) -> tuple[Symbol, ...]:
        """The symbols in order."""
        return self.symbols

    def __getitem__(self, which: int | str) -> Symbol:
        if isinstance(which, str):
            names = self.names()
            for head in self.symbols:
                if names[head] == which:
                    return head
            raise KeyError(f"The group has no output {which!r}; its outputs are {self.outputs()}.")
        return self.symbols[which]

    def __iter__(self) -> Iterator[Symbol]:
        return iter(self.symbols)

    def __len__(self) -> int:
        return len(self.symbols)

    def __repr__(self) -> str:
        return f"<Group {', '.join(self.outputs())}>"

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"Group.{name} cannot be set; build a new group.")
