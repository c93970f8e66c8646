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
