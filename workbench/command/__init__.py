"""The command line: `cli` has one sub-command per public function; the other modules do what it says."""

from typing import Any

from workbench import aliases


def __getattr__(name: str) -> Any:
    """Return the object that a former name of this package stands for, with a FutureWarning; else AttributeError."""
    return aliases.find(__name__, name)
