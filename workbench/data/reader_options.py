"""Parameters of a reader as one line of text: the setting `reading` of a spec, the panel and the command line."""

import os
from typing import Any

from workbench import option_text
from workbench.data.contract import Source, get
from workbench.data.errors import DataError
from workbench.data.files.types import guess


def of_source(source: Source, text: str | None) -> dict[str, Any]:
    """Return the options for that source.

    Names that it has no parameter of are refused with those it has (`DataError`).
    """
    try:
        options = option_text.parsed(text or "", "reading", "hashed=65536")
    except ValueError as error:
        raise DataError(str(error)) from None
    source.refuse_unknown(options)
    return options


def guess_reader_options(path: str | os.PathLike, text: str = "") -> tuple[str, str, str]:
    """Return (data set that reads the file or folder, its options as text, the reason); raises DataError.

    Options in `text` take precedence over guessed ones.
    """
    dataset, options, why = guess(path)
    return dataset, option_text.written({**options, **of_source(get(dataset), text)}), why


def with_label(reading: str, label: str) -> str:
    """Return the parameters of a reader with the name of the labels; DataError if they name another one already.

    >>> with_label("hashed=65536", "clicked")
    'hashed=65536, label=clicked'
    """
    if not label:
        return reading
    try:
        options = option_text.parsed(reading or "", "reading", "hashed=65536")
    except ValueError as error:
        raise DataError(str(error)) from None
    if "label" in options and options["label"] != label:
        raise DataError(f"label is {label!r}, and {options['label']!r} in reading; keep one of the two.")
    return option_text.written({**options, "label": label})


def label_of(reading: str) -> str:
    """Return the name of the labels in the parameters of a reader; "" if they have none, or cannot be read yet.

    >>> label_of("label=clicked, hashed=65536")
    'clicked'
    """
    try:
        options = option_text.parsed(reading or "", "reading", "hashed=65536")
    except ValueError:  # whoever reads the file with them says so
        return ""
    return str(options.get("label") or "")


def replace_label(reading: str, label: str) -> str:
    """Return the parameters of a reader with another name of the labels, or none if `label` is empty (`DataError`).

    >>> replace_label("hashed=65536, label=clicked", "")
    'hashed=65536'
    """
    try:
        options = option_text.parsed(reading or "", "reading", "hashed=65536")
    except ValueError as error:
        raise DataError(str(error)) from None
    options.pop("label", None)
    return option_text.written({**options, **({"label": label.strip()} if label.strip() else {})})
