"""Tools that pages of reports are made with: the templates of this folder, their filters and tables."""

import hashlib
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from markupsafe import Markup, escape

from workbench import store
from workbench.analysis import changes, formatting
from workbench.analysis.changes import Changes
from workbench.json_text import parsed
from workbench.store import RowError

# Text from rows and files made fit for pages and charts: characters that can be written, and no more than are read.


LONGEST = 500
"""Characters of a text in a row that are shown."""
LONGEST_NAME = 60
"""Characters of what was to be measured: names and paths, of which labels of charts are made."""
NAMES = set(store.TRIALS.settings)

WITHOUT_TEXT = frozenset({int, float, bool, type(None)})
"""Types of values that no text is in."""
UNSHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
"""Control characters but for tabs and line ends, marks that turn the direction of writing, and halves of characters."""


def folder_to_type(folder: Path) -> str:
    """Return the folder as a shell argument, relative to the working directory if it is inside.

    Pages then name no machine's paths.

    >>> folder_to_type(Path.cwd() / "results" / "my machine")
    "'results/my machine'"
    """
    absolute = folder.absolute()
    return shlex.quote(str(absolute.relative_to(Path.cwd()) if absolute.is_relative_to(Path.cwd()) else folder))


def written(value: Any, longest: int | None = LONGEST) -> Any:
    """Return a copy of a value (nested lists and dicts too) in which characters that cannot be shown are U+FFFD.

    Text longer than `longest` (None: no limit) loses its middle, and ends with a few digits of its hash, so that
    different texts stay different.
    """
    if isinstance(value, str):
        text = UNSHOWN.sub("\ufffd", value)
        return text if longest is None or len(text) <= longest else _cut(text, value, longest)
    if isinstance(value, list) and _has_no_text(value):
        return list(value)  # samples: without a call for each number
    if isinstance(value, list) and {list}.issuperset(map(type, value)) and _has_no_text(chain.from_iterable(value)):
        return list(map(list, value))  # points of a curve
    if isinstance(value, dict):
        return {written(name, longest): written(item, longest) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)([item if type(item) in WITHOUT_TEXT else written(item, longest) for item in value])
    return value


def _has_no_text(values: Iterable[Any]) -> bool:
    """Return whether all values are numbers, flags or None."""
    return WITHOUT_TEXT.issuperset(map(type, values))


def written_frame(frame: pd.DataFrame, longest: int | None = LONGEST) -> pd.DataFrame:
    """Return a copy of the frame with the texts of its object columns cleaned and cut by `written`.

    Names of settings are cut to `LONGEST_NAME`; `longest` None cuts nothing.
    """
    texts = [name for name in frame.columns if frame[name].dtype == object]
    most = {name: longest and LONGEST_NAME if name in NAMES else longest for name in texts}
    values = {name: _written_values(frame[name].tolist(), most[name]) for name in texts}
    return frame.assign(**{name: pd.Series(values[name], dtype=object, index=frame.index) for name in texts})


def _written_values(values: list[Any], longest: int | None) -> list[Any]:
    """Return the values of a column as `written` copies them; each text is cleaned once, however often it occurs."""
    texts = {value: written(value, longest) for value in {value for value in values if isinstance(value, str)}}
    return [
        texts[value] if isinstance(value, str) else value if value is None else written(value, longest)
        for value in values
    ]


def _cut(text: str, whole: str, longest: int) -> str:
    """Return `text`, longer than `longest`, cut to that, ending with a hash of `whole` to stay unique."""
    digits = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    tail = longest // 3
    return f"{text[: longest - tail - 10]} … {text[-tail:]} {digits}"


class ExportError(ValueError):
    """Export that cannot be written; the message says what can, or what is missing."""


Table = dict[str, Any]  # columns: list of str; rows: list of lists of str; left: rows left out


@cache
def templates() -> jinja2.Environment:
    """Return the Jinja environment of this folder's templates with its filters; made once."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=jinja2.select_autoescape(["html"]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"plain": _plain, "fenced": _fenced, "unbroken": unbroken, "coded": _coded}
    environment.filters["plain_but_code"] = _plain_but_code
    return environment


def _plain(value: Any) -> str:
    """Return text for one line of Markdown, with special characters escaped."""
    return _escaped(" ".join(str(value).split()))


def _escaped(text: str) -> str:
    """Return the text with Markdown's special characters escaped."""
    return re.sub(r"([\\`*<>|\[\]])", r"\\\1", text)


def _plain_but_code(value: Any) -> str:
    r"""Return Markdown in which text between backticks is code and all else is escaped, on one line.

    >>> _plain_but_code("4 * 2: type `a_b` now")
    '4 \\* 2: type `a_b` now'
    """
    pieces = re.split(r"(`[^`]+`)", " ".join(str(value).split()))
    return "".join(piece if place % 2 else _escaped(piece) for place, piece in enumerate(pieces))


def unbroken(value: Any) -> str:
    """Return text with no-break spaces between numbers and their sign or unit, after "width", and before "!"."""
    units = r"(?<=\d) (?=(%|ns|µs|ms|s|B|kB|MB|GB|TB|times)(?!\w))"
    return re.sub(rf"(?<=≤) (?=\d)|(?<=width) (?=\d)| (?=!)|{units}", "\u00a0", str(value))


def _coded(value: Any) -> Markup:
    """Return HTML, escaped, in which text between backticks is code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(unbroken(value)))))


def _fenced(value: str) -> str:
    """Return a Markdown code block whose fence is longer than any run of backticks in the text."""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", value)), default=0))
    return f"{fence}\n{value}\n{fence}"


def record(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file, such as machine.json; {} without the file, RowError if it is no object."""
    if not path.exists():
        return {}
    try:
        value = parsed(path.read_bytes())
    except ValueError as error:
        raise RowError(f"{path} is not JSON ({error}); fix or remove it.") from None
    if not isinstance(value, dict):
        raise RowError(f"{path} is a {type(value).__name__}; an object is expected.")
    return value


HARDWARE = ("id", "cpu", "cores", "caches", "bytes_memory")
"""What machine.json says of a machine that an upgrade of its software does not change."""


def machine_table(folder: Path, records: Iterable[Mapping[str, Any]]) -> Table:
    """Return a table of the machine and the versions that `records` were measured with, and of when that was.

    Machine, versions and dates are those of the records. What machine.json of the folder says of that machine comes
    with them; of its software only if the versions are the same, since the newest run of any suite writes that file.
    Without a record that names its machine, all is as machine.json has it.
    """
    described, measured = record(folder / "machine.json"), [one for one in records if one["machine"]]
    if not measured:
        return table_of(("what", "value"), machine_lines(written(described)))
    versions = joined_values(one["versions"] or {} for one in measured)
    ids = sorted({one["machine"] for one in measured})
    if ids != [described.get("id")]:
        described = {"id": ids}
    elif versions.items() - (described.get("versions") or {}).items():
        described = {name: described[name] for name in HARDWARE if name in described}
    known = described | {"versions": versions or described.get("versions", {}), "recorded": date_span(measured)}
    return table_of(("what", "value"), machine_lines(written(known)))


def machine_lines(machine: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (name, value) texts of a machine's record for readers: sizes with units, names in words.

    >>> machine_lines({"bytes_memory": 25_276_510_208, "caches": {"L1 data": "48K"}})
    [('memory', '25 GB'), ('caches: L1 data', '48 KiB')]
    """
    lines = []
    for name, value in flat(machine):
        if "bytes_" in name and value.isdigit():
            value = formatting.format_bytes(int(value), 2)
        elif name.rpartition(": ")[2] == "blas":
            value = re.sub(r"num_threads (\d+)", r"\1 threads", value)
            value = re.sub(r"\b(internal_api|version|architecture|threading_layer) ", "", value)
        value = re.sub(r"^(\d+)K$", r"\1 KiB", value)
        lines.append((name.replace("bytes_", "").replace("_", " ").removesuffix(": reason"), value))
    return lines


def joined_values(mappings: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return {name: its values in these mappings, each once, sorted and joined by commas}; empty ones are left out."""
    values: dict[str, set[str]] = {}
    for name, value in (item for mapping in mappings for item in mapping.items() if item[1]):
        values.setdefault(str(name), set()).add(str(value))
    return {name: ", ".join(sorted(several)) for name, several in values.items()}


def date_span(records: Iterable[Mapping[str, Any]]) -> str:
    """Return the date of the records, or the first and the last, such as "2026-10-01 to 2026-10-03"; "" if unknown."""
    dates = sorted({str(one["time"])[:10] for one in records if one["time"]})
    return " to ".join(dict.fromkeys((dates[0], dates[-1]))) if dates else ""


def table_of(columns: Iterable[str], rows: Iterable[Sequence[str]]) -> Table:
    """Return a table as the templates take it: {"columns", "rows", "left": 0}."""
    return {"columns": list(columns), "rows": [list(row) for row in rows], "left": 0}


def targets_table(targets: Iterable[Any], unmeasured: str = "") -> Table:
    """Return performance targets as a table for the template: target, wanted, measured, outcome.

    `unmeasured` is the outcome of a target whose `met` is None.
    """
    outcome = {True: "met", False: "missed", None: unmeasured}
    rows = ([each.what, each.wanted, each.measured, outcome[each.met]] for each in targets)
    return table_of(("target", "wanted", "measured", "outcome"), rows)


def flat(mapping: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Return (name, value) texts of a nested mapping; inner names are prefixed by "outer: ", lists joined by commas."""
    pairs = []
    for name, value in mapping.items():
        if isinstance(value, Mapping):
            pairs += flat(value, f"{prefix}{name}: ")
        else:
            items = value if isinstance(value, list | tuple) else [value]
            pairs.append((f"{prefix}{name}", ", ".join(map(_item, items))))
    return pairs


def _item(value: Any) -> str:
    """Return a value as text; a mapping as "name value name value"."""
    return " ".join(f"{name} {one}" for name, one in flat(value)) if isinstance(value, Mapping) else str(value)


# A comparison of two runs as Markdown for a pull request.


MOST = 200
"""Rows of a table."""


def of_runs(found: Changes, before: str, after: str) -> str:
    """Return the comparison of two runs as Markdown: headline, reasons, tables of configurations and memory.

    `before` and `after` are the names of the runs in the title.
    """
    tables = [("Configurations", changes.COLUMNS, changes.table(found.configurations))]
    tables += [("Peak memory", changes.COLUMNS, changes.table(found.memory))]
    return _page(f"{before} and {after}", changes.headline(found), list(changes.sentences(found)), tables)


def _page(title: str, headline: str, sentences: Sequence[str], tables: Sequence[tuple]) -> str:
    """Return the Markdown of a comparison; `tables` are (name, columns, rows), cut to `MOST` rows each."""
    cut = [(name, table_of(columns, rows[:MOST]) | {"left": len(rows[MOST:])}) for name, columns, rows in tables]
    content = {"title": title, "headline": headline, "sentences": sentences, "tables": cut}
    return templates().get_template("changes.md.jinja").render(content)
