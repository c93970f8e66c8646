"""Sweeps from complete choices, the user's files looked at."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.study import files, suited
from workbench.study.choices import ChoiceError, make_spec
from workbench.sweeps.spec import Spec

QUESTION = "Can sparse reduce training time?"
UNREAD = "unread"


def spec_of(choices: Mapping[str, Any], name: str) -> Spec:
    """Return the sweep of complete choices; `ChoiceError` tells all that is wrong, with the files they name too."""
    faults = files.find_file_errors(choices)
    sound = suited.drop_unread_files(choices) | dict.fromkeys(
        faults, UNREAD
    )  # so that the other slips are told beside them
    try:
        spec = make_spec(sound, name, QUESTION)
    except ChoiceError as error:
        raise ChoiceError("\n".join([*faults.values(), str(error)])) from None
    if faults:
        raise ChoiceError("\n".join(faults.values()))
    return spec


def name_of(choices: Mapping[str, Any]) -> str:
    """Return a name for the sweep of complete choices and its run folder: that of the user's file, else of the data
    set.

    >>> name_of({"dataset": "svmlight", "path": "~/my news.svm.gz"}), name_of({"dataset": "stdlib", "path": ""})
    ('my_news', 'stdlib')
    """
    stem = Path(suited.drop_unread_files(choices)["path"]).name.partition(".")[0]
    return re.sub(r"[^A-Za-z0-9_-]+", "_", stem).strip("_-") or choices["dataset"]
