"""Trials as they are, but for their times, which follow the laws of `rows`: so all sweeps of them have one answer."""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.support import rows as maker
from workbench.sweep import trial


def answers(request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The row of a real trial with the seconds of a law, undisturbed."""
    *_, row = trial.answers(request)
    law = maker.DENSE if row["format"] == "dense" else maker.SPARSE
    seconds = law.seconds(row["density"])
    times = {"seconds_step": seconds, "seconds_step_low": 0.99 * seconds, "seconds_step_high": 1.01 * seconds}
    yield row | times | {"samples": [seconds] * 3, "busy_others": 0.0}
