"""The process of a configuration: it draws the rows, and all trainings of them are checked against float64 loops."""

from collections.abc import Mapping
from functools import partial
from time import perf_counter
from typing import Any

from benchmarks.contest import Contest
from benchmarks.fair.competitors import list_competitors
from benchmarks.fair.configurations import Configuration, draw
from workbench.advising.frameworks import training
from workbench.measure import race


def contest(settings: Mapping[str, Any], request: Mapping[str, Any]) -> Contest:
    """Draw the rows of a configuration and return all trainings of them, each checked against float64 loops."""
    problem, policy = draw(Configuration(**settings), request["threads"]), race.Policy(**request["policy"])

    def prepare(one: training.Candidate, able: Mapping[str, race.ReadyCandidate]) -> race.Prepared:
        """Make a training ready unless there is a reason to leave it out."""
        if record := training.skipped_record(one, problem, able):
            return record, None
        return training.prepare_candidate(one, problem, policy, perf_counter)

    facts = {"nnz": int(problem.csr.nnz), "batches": problem.batches}
    return Contest(facts, {one.name: partial(prepare, one) for one in list_competitors()})
