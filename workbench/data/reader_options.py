"""Parameters of a reader as one line of text: the setting `reading` of a spec, the panel and the command line."""

from typing import Any

from workbench import option_text
from workbench.data.contract import Source
from workbench.data.errors import DataError


def of_source(source: Source, text: str | None) -> dict[str, Any]:
    """The options for that source; names that it has no parameter of are refused with those it has (`DataError`)."""
    try:
        options = option_text.parsed(text or "", "reading", "hashed=65536")
    except ValueError as error:
        raise DataError(str(error)) from None
    source.refuse_unknown(options)
    return options
