"""The trial of the trials: what the project's own measuring finds where the answer is known.

Trials are measured as a sweep measures them, by its own schedule and supervisor, and recorded; simulations take their
noise from these records.

How to add a part: a file of this folder with a function that takes the folder of results and a budget, and returns
outcomes; then an entry of `PARTS`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.self_trial import noise, simulations, trials
from kernels.registry import unknown_name

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Part:
    """A part: what it finds out, its share of the budget (0: it takes seconds), and what does it."""

    what: str
    share: float
    run: Callable[[Path, trials.Budget], Rows]


def read_noise(folder: Path) -> noise.Noise:
    """Return the noise recorded on this machine in a folder; SelfTrialError if it is too little."""
    return noise.noise_of(trials.read(folder / noise.FILE))


def _simulation_part(
    simulation: Callable[[noise.Noise], Iterator[dict[str, Any]]], what: str, is_judging: bool = True
) -> Part:
    """Return the part that runs a simulation on recorded noise: of the judging half of the groups, or of all.

    `what` says what it finds out.
    """

    def run(folder: Path, budget: trials.Budget) -> Rows:
        """Return the outcomes of the simulation on the noise recorded in the folder."""
        found = read_noise(folder)
        budget.tell(what)
        return list(simulation(found.every_second(simulations.JUDGED) if is_judging else found))

    return Part(what, 0.0, run)


PARTS = {
    "record": Part("records noise of this machine, which the simulations need", 1.0, noise.record),
    "constants": _simulation_part(
        simulations.constants, "compares the constants of the statistics with recorded noise", False
    ),
    "coverage": _simulation_part(simulations.coverage, "simulates how often intervals hold the true ratio"),
    "calibration": _simulation_part(simulations.calibration, "simulates how often stated probabilities are right"),
    "power": _simulation_part(simulations.power, "simulates how often differences are decided"),
}


def choose_parts(names: Sequence[str]) -> list[str]:
    """Return the names of parts in the order of PARTS, all if `names` is empty; SelfTrialError for an unknown one."""
    for name in names:
        if name not in PARTS:
            raise trials.SelfTrialError(unknown_name("part of the self-trial", name, PARTS))
    return [name for name in PARTS if name in names or not names]


def run(
    names: Sequence[str], folder: Path, seconds_budget: float, progress: trials.Progress = trials.ignore_progress
) -> Iterator[tuple[str, Rows]]:
    """Run the named parts, each with its share of the budget (s); yield (name, outcomes), stored by then.

    Records of trials are stored as they are measured. Raises SelfTrialError if a part needs a recording that is
    missing. `seconds_budget` is divided by the parts' shares; outcomes are appended to a file in `folder`.
    """
    parts = {name: PARTS[name] for name in choose_parts(names)}
    folder.mkdir(parents=True, exist_ok=True)
    shares = sum(part.share for part in parts.values()) or 1.0
    if "record" not in parts and any(not part.share for part in parts.values()):
        read_noise(folder)  # before anything is measured for minutes
    for name, part in parts.items():
        rows = part.run(folder, trials.Budget(seconds_budget * part.share / shares, progress))
        trials.append(folder, rows)
        yield name, rows
