"""The command that measures what was chosen: every choice that does not follow from the data set is an option of it."""

import shlex
from collections.abc import Mapping
from typing import Any

from workbench.study.choices import CHOICES
from workbench.study.suited import completed, relevant

COMMAND = "workbench sweep"


def command_text(choices: Mapping[str, Any], run: str = "") -> str:
    """The command line, quoted for a shell; `run` is the run folder, quoted, its own where none is given.

    >>> command_text(completed({"dataset": "uniform", "widths": 4}))
    'workbench sweep --dataset uniform --widths 4'
    """
    expected = completed({"dataset": choices["dataset"]})
    asked = relevant(choices)
    words = [COMMAND, "--dataset", shlex.quote(asked["dataset"])]
    for choice in CHOICES[1:]:
        if asked[choice.name] != expected[choice.name]:
            words += [option(choice.name), shlex.quote(_typed(asked[choice.name]))]
    return " ".join([*words, *(["--run", run] if run else [])])


def option(name: str) -> str:
    """The option that makes a choice.

    >>> option("batch_rows")
    '--batch-rows'
    """
    return f"--{name.replace('_', '-')}"


def _typed(value: Any) -> str:
    return value if isinstance(value, str) else ", ".join(value)
