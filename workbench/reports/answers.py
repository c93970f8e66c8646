"""Answers of rows for programs: of each group, measure and density the better side, as sure as it is."""

from typing import Any

import pandas as pd

from workbench.analysis import configurations, formatting
from workbench.analysis.compare import contests
from workbench.analysis.grades import comparison_facts

MEASURES = {"time": "seconds_step", "memory": "bytes_peak"}


def answers(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return one record for each group, measure and density, with the fields of `grades.comparison_facts` and both
    configurations.

    `group` has the settings that its configurations share; `sparse` and `dense` name the best configuration of each
    side, None if a side has none. Values are those of JSON. O(rows * rounds).
    """
    return [
        {
            "group": group.settings,
            "measure": name,
            "density": contest.density,
            **comparison_facts(contest),
            "sparse": formatting.name_configuration(contest.sparse) if contest.sparse else None,
            "dense": formatting.name_configuration(contest.dense) if contest.dense else None,
        }
        for group in configurations.groups(frame)
        for name, measure in MEASURES.items()
        for contest in contests(group.rows, measure)
    ]
