"""Options of a model: a table of its numbers and choices, such as the width of a hidden layer.

>>> of_model("m", {"hidden": Option(64, "units of a hidden layer", least=1)}, "hidden=16")
{'hidden': 16}
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workbench import option_text


class ModelError(ValueError):
    """A model is unknown or does not fit its arguments; the message says what is allowed."""


@dataclass(frozen=True)
class Option:
    """One option: its `default` (which gives its type), its meaning, and the allowed values.

    Numbers are between `least` and `most`; text is one of `allowed`, or matches the regular expression `form`, of which
    `like` is an example. Text of digits may be given as a number.
    """

    default: int | float | str
    meaning: str
    least: float | None = None
    most: float | None = None
    allowed: tuple[str, ...] = ()
    form: str = ""
    like: str = ""

    @property
    def values(self) -> str:
        """The allowed values as text."""
        if self.allowed:
            return f"one of {', '.join(self.allowed)}"
        if self.form:
            return f"text such as {self.like}"
        kind = "a whole number" if isinstance(self.default, int) else "a number"
        bounds = [("from", self.least), ("to", self.most)]
        return " ".join([kind, *(f"{word} {bound:g}" for word, bound in bounds if bound is not None)])

    def holds(self, value: Any) -> bool:
        """Return whether the value is allowed."""
        if self.allowed:
            return value in self.allowed
        if self.form:
            return type(value) in (int, str) and re.fullmatch(self.form, str(value)) is not None
        kinds = (int,) if isinstance(self.default, int) else (int, float)
        if not isinstance(value, kinds) or isinstance(value, bool):
            return False
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)


def of_model(name: str, table: Mapping[str, Option], text: str | None) -> dict[str, Any]:
    """Return all options of the model `name` from text such as "hidden=16", others at their defaults.

    Raises ModelError for invalid text, an unknown name or a value that is not allowed.
    """
    try:
        given = option_text.parsed(text or "", "model_options", "hidden=64")
    except ValueError as error:
        raise ModelError(str(error)) from None
    for option, value in given.items():
        if option not in table:
            known = f"its options are {', '.join(table)}" if table else "it has none"
            raise ModelError(f"The {name} model has no option {option!r}; {known}.")
        if not table[option].holds(value):
            raise ModelError(f"The option {option} of {name} is {value!r}; it is {table[option].values}.")
    return {option: given.get(option, entry.default) for option, entry in table.items()}
