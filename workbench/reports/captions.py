"""Text from rows and files made fit for pages and charts: characters that can be written, and no more than are read."""

import hashlib
import re
import shlex
from pathlib import Path
from typing import Any

import pandas as pd

from workbench import store

LONGEST = 500
"""Characters of a text in a row that are shown."""
LONGEST_NAME = 60
"""Characters of what was to be measured: names and paths, of which labels of charts are made."""
NAMES = {*store.TRIALS.settings, *store.BENCH.settings}

UNSHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
"""Control characters but for tabs and line ends, marks that turn the direction of writing, and halves of characters."""


def folder_to_type(folder: Path) -> str:
    """Return the folder as an argument of a command: from the working folder if it is inside, so that pages name no
    machine's.

    >>> folder_to_type(Path.cwd() / "results" / "my machine")
    "'results/my machine'"
    """
    absolute = folder.absolute()
    return shlex.quote(str(absolute.relative_to(Path.cwd()) if absolute.is_relative_to(Path.cwd()) else folder))


def written(value: Any, longest: int | None = LONGEST) -> Any:
    """Return the value with all text within it, names too, of characters that can be written, the others as U+FFFD.

    Text longer than `longest` loses its middle, and ends with a few digits of its hash: what differed differs still.
    """
    if isinstance(value, str):
        return _cut(UNSHOWN.sub("\ufffd", value), value, longest)
    if isinstance(value, dict):
        return {written(name, longest): written(item, longest) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(written(item, longest) for item in value)
    return value


def written_frame(frame: pd.DataFrame, longest: int | None = LONGEST) -> pd.DataFrame:
    """Return the frame with its text so, shorter where it is a name; other columns as they are."""
    texts = [name for name in frame.columns if frame[name].dtype == object]
    most = {name: longest and LONGEST_NAME if name in NAMES else longest for name in texts}
    values = {name: [written(value, most[name]) for value in frame[name]] for name in texts}
    return frame.assign(**{name: pd.Series(values[name], dtype=object, index=frame.index) for name in texts})


def _cut(text: str, whole: str, longest: int | None) -> str:
    """Return a text cut to `longest` characters, with a digest of `whole` to stay unique."""
    if longest is None or len(text) <= longest:
        return text
    digits = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    tail = longest // 3
    return f"{text[: longest - tail - 10]} … {text[-tail:]} {digits}"
