"""The result of `advise`: the recommendation with its evidence, its command, and the data it was measured on."""

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from workbench.analysis.grades import comparison_facts
from workbench.analysis.recommendation import Recommendation
from workbench.data import Profile
from workbench.measure.posterior import Ratio


@dataclass(frozen=True)
class Answer:
    """The answer to "sparse or dense, and how": for a panel, a notebook, a terminal or a program.

    `recommendation` has the sentences, each with the keys of its configurations in `folder`; `command` trains what is
    recommended, empty if nothing ran. `settings` are those of the data, the model and the optimizer. `seconds` is
    how long it took, of `seconds_budget`; `trials` were measured, `is_stopped` tells that somebody ended it early.
    `seconds_compiled` of them went into code that this machine had not kept.
    """

    recommendation: Recommendation
    command: str
    profile: Profile
    settings: dict[str, Any]
    folder: Path
    seconds: float
    seconds_budget: float
    trials: int
    is_stopped: bool = False
    seconds_compiled: float = 0.0
    guesses: tuple[str, ...] = ()
    """A sentence for each guess on the data and the model, with what to type to change it."""
    note: str = ""
    """What the answer leaves out: rows of the file that were not read; "" if nothing."""

    def __str__(self) -> str:
        lines = [str(self.recommendation)]
        lines += [f"Train it with: {self.command}"] if self.command else []
        return "\n".join([*lines, self.spent])

    @property
    def spent(self) -> str:
        """Text on how much was measured, and where its rows are."""
        stopped = "stopped early; " if self.is_stopped else ""
        took = f"{self.trials} trials in {self.seconds:.0f} of {self.seconds_budget:.0f} s"
        once = f", {self.seconds_compiled:.0f} s of them compiling, which is kept" if self.seconds_compiled >= 1 else ""
        read = f"{self.note}\n" if self.note else ""
        return f"{read}{stopped}{took}{once}. Rows: {self.folder}"

    def as_json(self) -> dict[str, Any]:
        """Return numbers, sentences with their keys, command and profile, for JSON.

        The answer itself as in `grades.comparison_facts`.
        """
        told = self.recommendation
        ratios = {
            name: _finite(found.ratio) if found and found.ratio else None
            for name, found in (("time", told.time), ("memory", told.memory))
        }
        return {
            "verdict": told.verdict,
            **(comparison_facts(told.time) if told.time else {}),
            "why": str(told.headline),
            "recommended": told.settings,
            "key": told.key,
            "dense_over_sparse": ratios,
            "sentences": [asdict(said) for said in told.sentences],
            "command": self.command,
            "settings": self.settings,
            "trials": self.trials,
            "seconds": self.seconds,
            "is_stopped": self.is_stopped,
            "guesses": list(self.guesses),
            "note": self.note,
            "rows": str(self.folder),
            "profile": asdict(self.profile),
        }


def _finite(ratio: Ratio) -> dict[str, float | None]:
    """Return a ratio and its interval with None in place of an infinite or unknown value."""
    named = {"value": ratio.value, "low": ratio.low, "high": ratio.high}
    return {name: end if math.isfinite(end) else None for name, end in named.items()}
