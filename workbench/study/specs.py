"""From complete choices to the sweep they ask for, the user's files looked at."""

from collections.abc import Mapping
from typing import Any

from workbench.study import files, suited
from workbench.study.choices import ChoiceError, make_spec
from workbench.sweep.spec import Spec

QUESTION = "Can sparse reduce training time?"
UNREAD = "unread"


def spec_of(choices: Mapping[str, Any], name: str) -> Spec:
    """The sweep of complete choices; `ChoiceError` tells all that is wrong, with the files they name too."""
    faults = files.problems(choices)
    sound = suited.relevant(choices) | dict.fromkeys(faults, UNREAD)  # so that the other slips are told beside them
    try:
        spec = make_spec(sound, name, QUESTION)
    except ChoiceError as error:
        raise ChoiceError("\n".join([*faults.values(), str(error)])) from None
    if faults:
        raise ChoiceError("\n".join(faults.values()))
    return spec
