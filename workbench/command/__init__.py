"""The command line: `cli` has one sub-command per public function; the other modules do what it says."""

from typing import Any

from workbench import aliases


def __getattr__(name: str) -> Any:
    """Return what a former name stands for, with a FutureWarning."""
    return aliases.find(__name__, name)
