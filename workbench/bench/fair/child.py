"""Process of a configuration: it draws the rows, tells which candidate it is at, and answers with records."""

from collections.abc import Iterator
from typing import Any

from workbench.bench.child import set_threads
from workbench.bench.fair.configurations import Configuration
from workbench.bench.fair.contract import competitors
from workbench.bench.fair.measure import Policy, measure
from workbench.bench.fair.problem import draw


def answers(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Answer `{"at": name}` before each candidate, and `{"name": ..., "record": {...}}` with the record of each.

    `left_out` are names of candidates that ended a process before this one.
    """
    set_threads(request["threads"])
    configuration = Configuration(**request["configuration"])
    yield {"at": "rows"}
    problem = draw(configuration, request["threads"])
    facts = {"nnz": int(problem.csr.nnz), "batches": problem.batches}
    able = [competitor for competitor in competitors() if competitor.name not in request["left_out"]]
    for answer in measure(problem, able, Policy(**request["policy"])):
        yield answer | ({"record": facts | answer["record"]} if "record" in answer else {})
