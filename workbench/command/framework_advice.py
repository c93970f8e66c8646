"""`workbench advise DATA --for FRAMEWORK`: the ways of a framework timed with a progress line, then the answer."""

import json
import sys
from collections.abc import Mapping

from rich.panel import Panel
from rich.text import Text

from workbench.bench.frameworks import answer_for
from workbench.bench.frameworks.answer import BUDGET
from workbench.command import data_source, terminal


def show(
    source: str,
    framework: str,
    read: Mapping[str, str],
    budget: float | None,
    batch_rows: int | None,
    as_json: bool,
) -> None:
    """Read the data, time the ways of the framework and print the answer, as JSON if asked for.

    `read` says how the data is read, as `data_source.load` takes it. `budget` are seconds, None for the usual ones.
    """
    dataset = data_source.load(source, **read)
    with terminal.stderr.status("Reading") as status:
        answer = answer_for(
            framework, dataset, budget=budget or BUDGET, batch_rows=batch_rows, told=lambda what: status.update(what)
        )
    if as_json:
        print(json.dumps(answer.as_json(), indent=1), file=sys.stdout)
        return
    console = terminal.console
    console.print(Panel(Text(answer.headline), title="Recommended", title_align="left"))
    for line in answer.lines_of_ways:
        console.print(f"  {line}", markup=False, highlight=False)
    took = f"{answer.rows:,} rows, {answer.batch_rows} a batch, plain SGD, timed in {answer.seconds:.0f} s."
    console.print(took, highlight=False)
    console.print("Lines to paste (x: SciPy CSR matrix, y: labels)", style="bold")
    console.print(answer.best.lines, markup=False, highlight=False, soft_wrap=True)
