"""Process of a configuration: it draws the rows, says which candidate it is at, and answers with records."""

from collections.abc import Iterable, Iterator
from typing import Any

from benchmarks.fair.competitors import list_competitors
from benchmarks.fair.configurations import Configuration, draw
from workbench.advising.frameworks.training import measure
from workbench.measure.race import Policy, Record, set_threads


def answers(request: dict[str, Any]) -> Iterator[Record]:
    """Yield `{"at": name}` before each candidate is prepared, then `{"name": ..., "record": columns}` of each.

    `request` has `configuration`, `policy`, `threads` and `left_out`, names of candidates that ended an earlier
    process.
    """
    set_threads(request["threads"])
    configuration = Configuration(**request["configuration"])
    yield {"at": "rows"}
    problem = draw(configuration, request["threads"])
    facts = {"nnz": int(problem.csr.nnz), "batches": problem.batches}
    able = [competitor for competitor in list_competitors() if competitor.name not in request["left_out"]]
    yield from with_facts(facts, measure(problem, able, Policy(**request["policy"])))


def with_facts(facts: Record, answers: Iterable[Record]) -> Iterator[Record]:
    """Yield the answers of a process, their records with the columns `facts`, which those of a record override."""
    for answer in answers:
        yield answer | ({"record": facts | answer["record"]} if "record" in answer else {})
