"""Options as one line of text, and options that a message names, in the words of whoever shows it.

>>> parsed("hashed=65536, weighting=tfidf, lower=false")
{'hashed': 65536, 'weighting': 'tfidf', 'lower': False}
>>> str(Options({"variable": "a, b", "hashed": 65536}))
"hashed=65536, variable='a, b'"
"""

import contextlib
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

from workbench.settings import BY_NAME, LABEL

Plain = str | int | float | None
_OPTION = re.compile(r"\s*(\w+)\s*=\s*('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^,'\"]*)\s*(?:,|$)")
_WORDS = {"true": True, "yes": True, "false": False, "no": False, "none": None}


class Options(dict[str, Any]):
    """Options by name, in the order of the names: not changed once made, so it can be hashed.

    Values are text, numbers, bools or None; others become what their text says. As text it is the line that `parsed`
    reads.
    """

    def __init__(self, options: Mapping[str, Any] = MappingProxyType({})) -> None:
        """Take over the options, sorted by name."""
        plain = ((name, value if isinstance(value, Plain) else _value(str(value))) for name, value in options.items())
        super().__init__(sorted(plain))

    def __hash__(self) -> int:  # type: ignore[override]
        """Return the hash of names and values."""
        return hash(tuple(self.items()))

    def __str__(self) -> str:
        """Return the options as one line "name=value, name=value"; `parsed` is the inverse."""
        return ", ".join(f"{name}={_text(value)}" for name, value in self.items())


def parsed(text: str, setting: str = "options", example: str = "hashed=65536") -> dict[str, Any]:
    """Return {name: value} of a line "name=value, name=value"; values are numbers, bools, None, else text.

    Quotes keep commas and digits as text. ValueError, naming `setting` and giving `example`, for an invalid line or a
    repeated name.
    """
    options: dict[str, Any] = {}
    at = 0
    while text[at:].strip():
        found = _OPTION.match(text, at)
        if not found:
            raise ValueError(f"{setting} is {text!r}; it is name=value, with commas between several: {example}.")
        name, value = found[1], found[2].strip()
        if name in options:
            raise ValueError(f"{setting} is {text!r}; {name!r} is given twice.")
        options[name] = _value(value)
        at = found.end()
    return options


EXAMPLES = {"reading": "hashed=65536", "model_options": "hidden=64"}
"""Settings that are options by name, with an example of each."""


def read_options(given: Mapping[str, Any] | str | None, setting: str) -> Options:
    """Return the options of a mapping or of a line of text, none of None; ValueError for anything else."""
    if not isinstance(given, Mapping | str | None):
        raise ValueError(f"{setting} is {given!r}; expected options, name=value with commas between.")
    return Options(parsed(given, setting, EXAMPLES[setting]) if isinstance(given, str) else given or {})


def _value(text: str) -> Any:
    """Return the value of a text: quoted text, true/yes/false/no as bool, none as None, a number, else the text."""
    if text[:1] in ("'", '"'):
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    if text.casefold() in _WORDS:
        return _WORDS[text.casefold()]
    for kind in (int, float):
        try:
            return kind(text) if "_" not in text else text
        except ValueError:
            continue
    return text


def _text(value: Any) -> str:
    """Return the text that `_value` reads as `value` (None, bool, number or text), in quotes if needed."""
    if value is None or isinstance(value, bool):
        return str(value).casefold()
    if isinstance(value, int | float):
        return str(value)
    text = str(value)
    is_plain = text == text.strip() and text and not re.search(r"[,'\"\\]", text) and _value(text) == text
    return text if is_plain else "'" + re.sub(r"(['\\])", r"\\\1", text) + "'"


# Options in messages. A message holds a mark, and a door has the words: Python, the command line, the panel.

_MARK = re.compile("\N{LEFT WHITE SQUARE BRACKET}(.*?)\N{RIGHT WHITE SQUARE BRACKET}")
_OTHERS = ("force", "quote_formulas", "stream", "bits")
"""Options of commands that messages name, apart from settings."""


def typed(**options: Any) -> str:
    """Return a mark of options in a message: `worded` puts in its place what is typed for them."""
    line = ", ".join(f"{name}={_text(value)}" for name, value in options.items())
    return f"\N{LEFT WHITE SQUARE BRACKET}{line}\N{RIGHT WHITE SQUARE BRACKET}"


def in_python(options: Mapping[str, Any]) -> str:
    """Return options as keyword arguments.

    >>> in_python({"label": "NAME", "implicit": True})
    'label="NAME", implicit=True'
    """
    is_text = (isinstance(value, str) and not value.startswith("{") for value in options.values())
    words = (f'"{value}"' if text else str(value) for value, text in zip(options.values(), is_text, strict=True))
    return ", ".join(map("{}={}".format, options, words))


COLUMNS_IN_FILE = "workbench data columns FILE --out columns.toml, edit it, then "
"""What makes a file of what Python takes as a mapping."""


def on_command_line(options: Mapping[str, Any]) -> str:
    """Return options as those of commands; parameters of readers are of one option.

    >>> on_command_line({"dataset": "ratings", "implicit": True, "duplicates": "last"})
    '--dataset ratings --reading implicit=true,duplicates=last'
    >>> on_command_line({"stream": False})
    '--no-stream'
    """
    own = {name: value for name, value in options.items() if name in (*BY_NAME, LABEL.name, *_OTHERS)}
    if str(own.get("columns", "")).startswith("{"):
        return COLUMNS_IN_FILE + on_command_line({"columns": "columns.toml"})
    words = [
        word
        for name, value in own.items()
        for word in (
            f"--{'no-' * (value is False)}{name.replace('_', '-')}",
            *([] if isinstance(value, bool) else [shlex.quote(str(value))]),
        )
    ]
    read = [f"{name}={_text(value)}" for name, value in options.items() if name not in own]
    return " ".join([*words, *([f"--reading {shlex.quote(','.join(read))}"] if read else [])])


_door: ContextVar[Callable[[Mapping[str, Any]], str]] = ContextVar("door", default=in_python)


@contextlib.contextmanager
def at_door(words: Callable[[Mapping[str, Any]], str]) -> Iterator[None]:
    """Have messages that are made, or worded, within the context name options in these words."""
    token = _door.set(words)
    try:
        yield
    finally:
        _door.reset(token)


def worded(text: str) -> str:
    """Return a message with each mark of options replaced by what is typed for them at this door.

    >>> worded(f"Another one: {typed(label='NAME')}.")
    'Another one: label="NAME".'
    """
    return _MARK.sub(lambda mark: _door.get()(parsed(mark[1])), text)
