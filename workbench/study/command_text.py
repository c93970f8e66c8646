"""The command that measures what was chosen: every choice that does not follow from the data set is an option of it."""

import shlex
from collections.abc import Mapping
from typing import Any

from workbench.study.choices import CHOICES
from workbench.study.suited import complete_with_suggestions, drop_unread_files

COMMAND = "workbench sweep"


def command_text(choices: Mapping[str, Any], run: str = "") -> str:
    """Return the command line, quoted for a shell; `run` is the run folder, quoted, its own where none is given.

    >>> command_text(complete_with_suggestions({"dataset": "uniform", "widths": 4}))
    'workbench sweep --dataset uniform --widths 4'
    """
    expected = complete_with_suggestions({"dataset": choices["dataset"]})
    asked = drop_unread_files(choices)
    words = [COMMAND, "--dataset", shlex.quote(asked["dataset"])]
    for choice in CHOICES[1:]:
        if asked[choice.name] != expected[choice.name]:
            words += [option_of(choice.name), shlex.quote(_quote_value(asked[choice.name]))]
    return " ".join([*words, *(["--run", run] if run else [])])


def option_of(name: str) -> str:
    """Return the option that makes a choice.

    >>> option_of("batch_rows")
    '--batch-rows'
    """
    return f"--{name.replace('_', '-')}"


def _quote_value(value: Any) -> str:
    """Return a choice as text, lists separated by commas."""
    return value if isinstance(value, str) else ", ".join(value)
