"""The demo: one model trained sparse and dense on real data, then the sweep that finds where dense wins."""

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from kernels.vector import gather
from workbench import store
from workbench.command import warming
from workbench.command.console import console
from workbench.reports import report
from workbench.sweeps import grid, run_folder, spec

SPECS = Path(__file__).parents[1] / "specs"
TITLE = "Would sparse tensors reduce training time and memory?"
COMMAND = "workbench demo"
SECONDS_QUICK, SECONDS_LEAST = 52.0, 20.0
"""Seconds of compiling and sweeping in the quick demo, and the least of them for the sweep."""
SECONDS_WHOLE, SECONDS_DENSITIES = 95.0, 50.0
"""Seconds of compiling, training and sweeping in the whole demo, and the least of them for the sweep."""
SHARE_LEAST, SHARE_DENSITIES = 0.25, 0.7
"""Least seconds for the sweep of those of compiling in the quick demo, of all before it in the whole one: where other
programs slow that down, they slow down trials too."""

Tell = Callable[[str, Path], None]
"""Shows a run while it goes on: called with a heading and the run's folder; returns when the run is over."""


def run(name: str, root: Path, heading: str, tell: Tell, seconds: float | None = None) -> list[dict]:
    """Run or resume the sweep of the packaged spec `name` in a folder below `root`; return its records.

    `tell(heading, folder)` shows it and returns when it is over; `seconds` is its budget, None for the spec's.
    KeyboardInterrupt if it was stopped, RunError if it failed.
    """
    planned = spec.load_spec(SPECS / f"{name}.toml")
    if seconds is not None:
        limits = planned.limits.model_copy(update={"budget": seconds})
        planned = planned.model_copy(update={"limits": limits})
    folder = root / name
    with run_folder.stopped_by_interrupt(folder):
        run_folder.start_run(planned, folder)
        tell(heading, folder)
    state = run_folder.read_progress(folder)
    if state.state == "stopped":
        raise KeyboardInterrupt
    if state.state != "finished":
        raise run_folder.RunError(f"The sweep in {folder} is {state.state}: {state.message}")
    return run_folder.read_current_records(folder)


def train_both(root: Path, tell: Tell) -> list[dict]:
    """Train one softmax model sparse and dense in a folder below `root`; return the records.

    They have seconds an epoch, peak memory and accuracy. `tell` is as in `run`. On a machine that never compiled a
    kernel all candidates of the demo are compiled first, on all cores: trials, which are measured, do it one by one.
    """
    if not gather.has_compiled_loops():
        compile_candidates("demo_train", _sweep_name(False))
    return run("demo_train", root, "Training sparse and dense on the standard library's source text", tell)


def sweep_density(root: Path, tell: Tell, quick: bool = False, spent: float = 0.0) -> list[dict]:
    """Measure step time and memory at several densities, sparse and dense, below `root`; return the records.

    It takes what the `spent` seconds leave of a fixed number; `quick` compiles first and takes less. `tell` is as in
    `run`.
    """
    seconds = max(SECONDS_WHOLE - spent, SECONDS_DENSITIES, SHARE_DENSITIES * spent)
    if quick:
        compiling = compile_candidates(_sweep_name(True))
        seconds = max(SECONDS_QUICK - compiling, SECONDS_LEAST, SHARE_LEAST * compiling)
    return run(_sweep_name(quick), root, "Sweeping density and format", tell, seconds)


def compile_candidates(*names: str) -> float:
    """Compile the code of the candidates of specs in several processes; return the seconds that it took."""
    read = ("format", "storage", "execution", "gradient", "update", "optimizer")
    of_candidates = {  # loops over stored entries depend on how many there are
        (
            configuration.format != "dense" and configuration.density is None,
            *(getattr(configuration, setting) for setting in read),
        ): configuration
        for name in names
        for configuration in grid.expand_grid(spec.load_spec(SPECS / f"{name}.toml")).configurations
    }
    longest_first = sorted(of_candidates.values(), key=lambda configuration: configuration.execution != "epoch")
    about = 4 * len(longest_first)
    with console.status(f"Compiling the code of the candidates, once: about {about} s, longer beside other programs"):
        seconds = warming.warm_together(longest_first)
    count = len({key[1:] for key in of_candidates})
    console.print(f"The code of {count} candidates is ready after {seconds:.0f} s.", highlight=False)
    return seconds


def conclude(rows: list[dict], root: Path, quick: bool = False) -> tuple[pd.DataFrame, Path]:
    """Write report.html and report.md of the records `rows` into `root`; return frame and path of the report."""
    frame = store.frame(rows)
    machine = json.loads((root / _sweep_name(quick) / "machine.json").read_text(encoding="utf-8"))
    path = root / "report.html"
    command = f"{COMMAND} --quick" if quick else COMMAND
    report.html(frame, path, title=TITLE, command=command, machine=machine)
    report.markdown(frame, root / "report.md", title=TITLE, command=command, machine=machine)
    return frame, path


def _sweep_name(quick: bool) -> str:
    """Return the name of the demo's spec, which names its run folder too."""
    return "demo_quick" if quick else "demo_density"
