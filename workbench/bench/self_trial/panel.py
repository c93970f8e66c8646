"""The part in which a panel looks on: what it shows of a sweep must not make the sweep's trials slower.

Each trial is measured twice a round, in turned order. Once as a sweep is seen: the trial tells its stages, and a panel
in the kernel of a notebook reads the run folder, draws charts, tables and the verdict, and sends them. Once alone: no
stage is reported, and the kernel stands still. Both count whatever else ran; how many trials a sweep would have
tried again is counted, too. A browser that shows the panel is not part of this.
"""

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from workbench import atomic_files, store
from workbench.analysis.pool import group_by
from workbench.bench.self_trial import trials
from workbench.bench.self_trial.trials import (
    CANDIDATE_SETTINGS,
    DATA,
    SelfTrialError,
    configuration_of,
    outcome,
    ratio_row,
    seconds_by_round,
    share_row,
    split_key,
)
from workbench.measure.machine import disturbance_limit
from workbench.measure.posterior import Ratio
from workbench.measure.rounds import INTERIM_ANALYSES, counterbalanced_order, ratio_of
from workbench.sweeps import grid, run_folder, trial
from workbench.sweeps.spec import Configuration, Spec, dump_spec

FILE = "self-panel.jsonl"
ALONE, SEEN = NAMES = ("alone", "seen")
WORK = f"{__name__}:untold"
BATCH_ROWS, DENSITY = (64, 512), 0.03
SECONDS_START = 120.0
"""How long a kernel may take to show its first panel: libraries are loaded from a cold disk once."""
PANEL = """
from workbench.panels import lab
panel = lab.show(lab.study(dataset="uniform", run_dir={folder!r}), True)
"""
"""What the notebook runs. Its choices are not those of the sweep, which costs it a sentence more."""
TOGETHER = "all cells together"

Record = Mapping[str, Any]


def untold(request: dict) -> Iterator[dict]:
    """Yield the answers of a trial's process without its stage reports."""
    yield from (answer for answer in trial.answers(request) if "stage" not in answer)


def configurations() -> dict[str, Configuration]:
    """Return {name: configuration} of what is measured: each candidate at two batch sizes."""
    return {
        f"{name}, {batch_rows} rows a batch": configuration_of(name, batch_rows, DENSITY)
        for batch_rows in BATCH_ROWS
        for name in CANDIDATE_SETTINGS
    }


def spec() -> Spec:
    """Return the spec of the sweep over these configurations, which the panel shows."""
    axes: dict[str, tuple[Any, ...]] = {**DATA, "batch_rows": BATCH_ROWS, "density": (DENSITY,)}
    return Spec(name="self-panel", axes=axes, candidates=tuple(CANDIDATE_SETTINGS.values()))


@contextlib.contextmanager
def kernel(folder: Path) -> Iterator[Callable[[int], None]]:
    """Run a notebook kernel that shows the panel of the run in `folder`; yields a function that sends it a signal.

    Raises SelfTrialError if Jupyter is missing or the panel cannot be shown. The kernel is shut down at the end.
    """
    try:
        from jupyter_client.manager import KernelManager
    except ImportError as error:
        raise SelfTrialError(f"A panel needs Jupyter: pip install 'sparse-workbench[lab]' ({error}).") from None
    manager = KernelManager()
    manager.start_kernel(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        client = manager.blocking_client()
        client.start_channels()
        client.wait_for_ready(SECONDS_START)
        code = PANEL.format(folder=str(folder))
        reply = client.execute_interactive(code, timeout=SECONDS_START, output_hook=lambda _: None)
        client.stop_channels()
        if reply["content"]["status"] != "ok":
            raise SelfTrialError(f"The panel was not shown: {reply['content'].get('evalue', 'no reason given')}")
        process: Any = manager.provisioner
        pid = process.pid
        yield lambda number: os.kill(pid, number)
    finally:
        manager.shutdown_kernel(now=True)


def panel(folder: Path, budget: trials.Budget, most: int = INTERIM_ANALYSES[-1]) -> list[dict[str, Any]]:
    """Measure trials with and without a running panel in up to `most` rounds, at least four; return outcome records.

    A panel that cannot be shown gives one failed outcome. Records are appended to a file in `folder`; `budget` ends it
    early.
    """
    name, rows = trials.experiment("panel"), []
    with trials.Trials(folder / FILE, name, work=WORK) as alone, trials.Trials(folder / FILE, name) as seen:
        by_name = {ALONE: alone, SEEN: seen}
        seen.supervisor.run_name = alone.supervisor.run_name  # one run: their rounds are compared
        shown = begun(seen)
        try:
            with kernel(shown) as tell:
                for number in budget.rounds(most):
                    for configuration in configurations().values():
                        for way in counterbalanced_order(NAMES, number):
                            budget.tell(f"a panel next to a trial, round {number + 1}")
                            tell(signal.SIGCONT if way == SEEN else signal.SIGSTOP)
                            rows.append(row := by_name[way].measure_once(trials.task_of(configuration, way, number)))
                            tell(signal.SIGCONT)  # it may have been stopped while it held the lock of the records
                            store.append(shown / store.FILE, row | {"key": grid.configuration_key(configuration)})
        except SelfTrialError as error:
            return [outcome("panel", f"{TOGETHER}: seen / alone", "quiet", status="failed", reason=str(error))]
    return list(outcomes(rows))


def begun(measured: trials.Trials) -> Path:
    """Write spec and state of a running sweep into the run folder, as a panel expects them; return the folder."""
    supervisor = measured.supervisor
    atomic_files.write(supervisor.folder / run_folder.SPEC, dump_spec(spec()))
    supervisor.state.state = "running"
    supervisor.write()
    return supervisor.folder


def outcomes(rows: Sequence[Record]) -> Iterator[dict[str, Any]]:
    """Yield outcome records: the ratio seen / alone of each configuration and of all, and of trials to be repeated.

    `rows` are the trial records. The last are the shares of trials that a sweep would call disturbed and repeat.
    """
    by_configuration = group_by(rows, lambda row: split_key(row["key"])[0])
    names = {grid.configuration_key(configuration): name for name, configuration in configurations().items()}
    for key, own in by_configuration.items():
        sides = {way: seconds_by_round(own, way) for way in NAMES}
        yield _outcome(names.get(key, key), ratio_of(sides[SEEN], sides[ALONE]))
    means = {way: _means(list(by_configuration.values()), way) for way in NAMES}
    yield _outcome(TOGETHER, ratio_of(means[SEEN], means[ALONE]))
    for way in NAMES:
        own = [row for row in rows if split_key(row["key"])[1] == way and row["status"] == "ok"]
        again = sum(row["busy_others"] > disturbance_limit(row["threads"]) for row in own)
        yield share_row("panel", "trials that a sweep would try again", way, again, len(own), (None, None))


def _outcome(name: str, ratio: Ratio | None) -> dict[str, Any]:
    """Return the outcome record called `name` of a ratio, met if its interval contains 1; not met for None."""
    is_met = ratio is not None and ratio.low <= 1.0 <= ratio.high
    return ratio_row("panel", f"{name}: seen / alone", "quiet", ratio, truth=1.0, met=is_met)


def _means(by_configuration: list[list[Record]], way: str) -> dict[tuple[str, int], float]:
    """Return {(run, round): geometric mean of the step seconds over all configurations}, for complete rounds.

    `by_configuration` has the records of each configuration; `way` is "alone" or "seen".
    """
    each = [seconds_by_round(rows, way) for rows in by_configuration]
    whole = set.intersection(*map(set, each)) if each else set()
    return {place: float(np.exp(np.mean([np.log(own[place]) for own in each]))) for place in sorted(whole)}
