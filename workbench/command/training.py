"""Training one configuration in this process, its loss shown live in the terminal."""

import re
import time
from collections import Counter

from rich.live import Live
from rich.table import Table

from kernels import devices
from workbench import data, formats
from workbench.command.terminal import console
from workbench.measure import memory
from workbench.sweep.grid import setup_of, unread, why_dropped
from workbench.sweep.problem import Problem, make_problem
from workbench.sweep.spec import Cell, SpecError, validate
from workbench.sweep.trial import no_device
from workbench.sweep.warm import warm_kernels
from workbench.train import PHASES, Training, make_run, why_impossible
from workbench.train.completion import complete

SECONDS_SHOWN = 0.2


def cell_of(settings: dict) -> Cell:
    """The cell of the command's options, engine, gradient and update filled in; `SpecError` where it means nothing."""
    try:
        validate({"name": "train", "axes": settings})
    except SpecError as error:
        raise SpecError(_as_options(str(error))) from None
    cell = Cell(**complete(settings, fastest=True)[0])
    if reason := why_dropped(cell) or why_impossible(setup_of(cell)):
        raise SpecError(_as_options(reason))
    if names := unread(cell):
        raise SpecError(f"The data set {cell.dataset} takes no {names[0]}; leave --{names[0]} out.")
    return cell


def _as_options(text: str) -> str:
    """The text of an error about a sweep's axes, in the words of this command."""
    named = re.sub(r"\baxis (\w+) = ", lambda found: f"--{found[1].replace('_', '-')} ", text)
    return re.sub(r"the axis (\w+)", r"the option --\1", named)


def train(settings: dict) -> None:
    """Train the cell that the settings describe, show loss and phases, print quality on held-out rows."""
    cell = cell_of(settings)
    if cell.device == "cuda" and not (gpu := devices.probe()).present:
        raise SpecError(f"{no_device(gpu)} Take --device cpu.")
    problem = make_problem(cell)
    show_problem(cell, problem)
    run = make_run(setup_of(cell), problem.held(cell), problem.y, problem.width)
    with console.status("loading kernels, or compiling them the first time"):
        warm_kernels(cell)
        next(run.events())  # some code is made for the sizes at hand
        run.reset()
    phases, shown, start, losses = Counter(), 0.0, time.perf_counter(), []
    with Live(console=console, refresh_per_second=8) as live:
        for event in run.events(cell.epochs):
            phases.update(event.seconds)
            losses.append(event.loss)
            if time.perf_counter() - shown > SECONDS_SHOWN:
                shown = time.perf_counter()
                live.update(table(run, phases, losses, event.epoch, start))
        live.update(table(run, phases, losses, event.epoch, start))
    seconds = time.perf_counter() - start
    if not console.is_terminal:  # there Live leaves the line open
        console.print()
    quality = run.quality(problem.x_held_out, problem.y_held_out)
    console.print(f"{seconds / cell.epochs:.3g} s an epoch; held-out {run.model.quality_name} {quality:.4f}")
    held, peak = run.bytes_held / 2**20, memory.peak_bytes() / 2**20
    console.print(f"arrays hold {held:,.1f} MiB; the process's peak was {peak:,.0f} MiB, libraries included")
    if cell.device == "cuda":
        console.print(f"on {gpu.name} the arrays hold {run.bytes_device_held / 2**20:,.1f} MiB")


def show_problem(cell: Cell, problem: Problem) -> None:
    """One line on the data as it came out."""
    rows, features = problem.x.shape
    density = problem.x.nnz / (rows * features)
    held = formats.predicted_bytes("dense", rows, features, problem.x.nnz, cell.dtype, "int32")
    console.print(
        f"{cell.dataset}: {rows:,} rows x {features:,} features, density {density:.3g}, width {problem.width}; "
        f"dense it would be {held / 2**20:,.0f} MiB. Licence: {data.get(cell.dataset).licence}",
        markup=False,
    )


def table(run: Training, phases: Counter, losses: list[float], epoch: int, start: float) -> Table:
    """Epoch, step, loss (mean of the last 20 steps), and where the time of a step goes."""
    shown = Table("epoch", "step", "loss", "ms a step", "where it goes")
    total = sum(phases.values()) or 1.0
    recent = sum(losses[-20:]) / len(losses[-20:])
    shares = ", ".join(f"{phase} {phases[phase] / total:.0%}" for phase in PHASES if phases[phase] >= 0.005 * total)
    milliseconds = 1e3 * (time.perf_counter() - start) / run.step
    shown.add_row(str(epoch + 1), str(run.step), f"{recent:.4f}", f"{milliseconds:.3g}", shares)
    return shown
