"""Training one configuration in this process, its loss shown live in the terminal."""

import math
import shlex
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import typer
from rich.table import Table

from kernels import devices, threads
from kernels.registry import format_count, format_size
from kernels.vector.gather import has_compiled_loops
from workbench import data, formats, models, optimizers
from workbench.command import exit_codes
from workbench.command.console import console, live, print_line
from workbench.command.data_source import show_reading
from workbench.command.output import echo
from workbench.measure import memory
from workbench.models.scaling import Scaling
from workbench.sweeps.grid import refuse_unread_settings, setup_of, why_dropped
from workbench.sweeps.problem import HELD_OUT, Problem, make_problem, parameters_of_file
from workbench.sweeps.spec import Configuration, InvalidOption, SpecError, validate_spec
from workbench.training import PHASES, Run, StepEvent, Training, impossible_reason, make_run
from workbench.training.constant import constant_words
from workbench.training.learner import leave_scaling, scaling_of
from workbench.training.search import (
    COUNT,
    FEWEST_ROWS,
    LEAST_ROWS,
    Found,
    find_minimum,
    is_small,
    search_decay,
    why_no_search,
)
from workbench.training.setup import SetupError, complete_settings
from workbench.training.trained import ONE_AGAINST_REST, TrainedModel, refuse_taken, why_not_kept
from workbench.watching import watched_by

SECONDS_SHOWN = 0.2
NEAR_MINIMUM = 1e-3
"""Distance to the minimum of the objective, relative, from which on dual ascent has not reached it."""
EPOCHS_SHOWN = 20
"""The last ones, of more: the table stays on a screen."""


HOW = (
    *("optimizer", "learning_rate", "decay", "epochs", "batch_rows", "shuffle", "ahead", "device", "format", "engine"),
    *("gradient", "update", "storage", "execution", "serial"),
)
"""Options of how to train: if one is given, it is done so, and nothing is searched."""


def refuse_of_several(ctx: typer.Context, search: int | None) -> None:
    """Raise BadParameter for an option of `train` that is given and needs a single trainer."""
    if search:
        raise typer.BadParameter("several trainers search no settings. Leave --search out.", param_hint="--search")
    if not exit_codes.is_default(ctx, "held_out"):
        raise typer.BadParameter("several trainers hold out a fifth. Leave --held-out out.", param_hint="--held-out")


def refuse_with_l1(ctx: typer.Context, stream: bool | None) -> None:
    """Raise BadParameter for an option of `train` that an L1 penalty is not trained with."""
    given = [name for name in (*HOW, "trainers") if name != "decay" and not exit_codes.is_default(ctx, name)]
    given += ["stream"] if stream else []
    if given:
        name = given[0].replace("_", "-")
        text = f"it is trained by coordinate descent on all rows, and --{name} is given, too. Leave one of the two out"
        raise typer.BadParameter(f"{text}; --optimizer ftrl has another L1 penalty.", param_hint="--l1-ratio")


def settings_to_search(ctx: typer.Context, search: int | None) -> int | None:
    """Return how many settings to search, 0 for none, None to decide by the data.

    BadParameter for a count of 1, and for a search together with an option that it chooses.
    """
    given = next((name.replace("_", "-") for name in HOW if not exit_codes.is_default(ctx, name)), "")
    if search is None and given:
        echo(f"No decay is searched, because --{given} is given.", err=True)
        return 0
    if search and search < 2:
        raise typer.BadParameter(f"{search}; expected 2 settings or more, or 0 for none.", param_hint="--search")
    if search and given:
        text = f"it chooses how to train, and --{given} is given, too. Leave one of the two out."
        raise typer.BadParameter(text, param_hint="--search")
    return search


def configuration_of(settings: dict, several: bool = False) -> Configuration:
    """Return the configuration of the command's options, with missing backend, gradient and update filled in.

    The fastest are filled in, or for `several` trainers the usual ones. SpecError if the configuration is impossible or
    a setting has no effect.
    """
    validate_spec({"name": "train", "axes": settings})
    configuration = Configuration(**complete_settings(settings, fastest=not several)[0])
    if reason := why_dropped(configuration) or impossible_reason(setup_of(configuration)):
        raise SpecError(reason)
    refuse_unread_settings(configuration)
    return configuration


def train(
    settings: dict,
    save: Path | None = None,
    force: bool = False,
    search: int | None = 0,
    held_out: float = HELD_OUT,
    l1_ratio: float = 0.0,
) -> None:
    """Train the configuration of the settings; print loss, phases and held-out quality.

    The model is kept in the folder `save` unless None (`force` replaces one). `search` settings of the decay are tried
    first: 0 none, None as many as suit the data. `held_out` is the share of rows held out, `l1_ratio` that of the L1
    norm in the penalty. SpecError or DataError if it cannot be trained.
    """
    configuration = configuration_of(settings)
    if save is not None:
        refuse_taken(save, force)
        if reason := why_not_kept(models.get(configuration.model)):
            raise SpecError(reason)
    gpu = devices.probe() if configuration.device == "cuda" else None
    if gpu is not None and not gpu.present:
        from workbench.sweeps.budget import no_device

        raise SpecError(InvalidOption(f"{no_device(gpu)} Take --device cpu.", "device", "cuda"))
    with on_threads(configuration.threads):
        run, dataset = _train(configuration, gpu, settings, search, held_out, l1_ratio)
    if save is not None:
        parameters = parameters_of_file(vars(configuration)) if configuration.path else {}
        TrainedModel.of_run(run, dataset, configuration.dataset if configuration.path else "", parameters).save(
            save, force
        )
        console.print(f"The model is kept in {save}. To predict: workbench apply {save} FILE --out scores.csv", **PLAIN)


@contextmanager
def on_threads(count: int | None) -> Iterator[None]:
    """Limit kernels and BLAS to `count` threads within the context, None for all.

    SpecError if there are fewer cores.
    """
    if count is None:
        yield
        return
    before = threads.get_threads()
    try:
        threads.set_threads(count)
    except ValueError as error:
        raise SpecError(f"--threads: {error}") from None
    try:
        import threadpoolctl

        with threadpoolctl.threadpool_limits(limits=count):
            yield
    finally:
        threads.set_threads(before)


def _train(
    configuration: Configuration,
    gpu: devices.Gpu | None,
    settings: dict,
    search: int | None,
    held_out: float,
    l1_ratio: float = 0.0,
) -> tuple[Training, data.Dataset]:
    """Make the data, search if asked, train with the loss shown live, and print quality and memory.

    `gpu` is the probed device for "cuda", `settings` are those of the options for a search; `held_out` is a share of
    rows, `l1_ratio` the share of the L1 norm in the penalty. Returns the training and its data set. Kernels are
    compiled before the clock starts.
    """
    with show_reading():
        problem = make_problem(configuration, held_out)
    show_problem(configuration, problem)
    start = time.perf_counter()
    if l1_ratio:
        found: Found | None = _fit_l1(configuration, problem, search, l1_ratio)
    else:
        found = None if search == 0 else _search(configuration, problem, search)
    if found is not None:
        chosen = {"decay": found.decay, "epochs": max(found.epochs, 1)}
        configuration = configuration_of({**settings, "optimizer": "sgd", "execution": "dual", **chosen})
    scaling = Scaling()
    if found is None and configuration.device == "cpu" and scipy.sparse.issparse(problem.x):
        scaling = scaling_of(setup_of(configuration), problem.x, problem.y, None)
    if scaling.is_wide and configuration.dtype == "float32":
        print_line("The training is in float64: float32 is too coarse for products of columns so far from 0.")
        configuration = configuration.model_copy(update={"dtype": "float64"})
        problem = make_problem(configuration, held_out)
    held, y = scaling.rows(problem.held(configuration)), scaling.targets(problem.y)
    run = make_run(setup_of(configuration), held, y, problem.width, problem.facts)
    print_line(data.summary(problem.dataset, run.model.target))
    if found is not None and isinstance(run, Run):
        run.set_weights(found.weights, found.intercept)
        seconds = time.perf_counter() - start
        print_line(f"trained in {format_count(found.epochs, 'pass')} over the rows, those of the search included")
    else:
        seconds = _train_epochs(run, configuration, float(np.mean(np.square(scaling.target_scale))))
        if isinstance(run, Run):
            leave_scaling(run, scaling)
    if isinstance(run, Run) and (warning := _why_not_minimum(run, configuration, problem, found)):
        console.print(warning, **PLAIN)
    print_quality(run, problem, configuration, seconds / configuration.epochs)
    arrays, peak = format_size(run.bytes_held), format_size(memory.peak_bytes())
    print_line(f"memory: {arrays} in arrays; the process's peak was {peak}, libraries included")
    if gpu is not None:
        on_device: Any = run  # a training on a device, whose module is not imported here
        console.print(f"on {gpu.name} the arrays hold {format_size(on_device.bytes_device_held)}")
    if l1_ratio and run.model.loss == "softmax":
        return run, replace(problem.dataset, facts={**problem.dataset.facts, ONE_AGAINST_REST: True})
    return run, problem.dataset


def _train_epochs(run: Training, configuration: Configuration, unit: float) -> float:
    """Compile what is needed, then train all epochs with the loss, times `unit`, shown live; return their seconds."""
    if not has_compiled_loops():
        console.print(
            "The code of this training is compiled first, once. 'workbench warm' does so ahead for common ones.",
            **PLAIN,
        )
    with console.status("loading kernels, or compiling them the first time"):
        if configuration.execution not in ("epoch", "dual"):  # whose first event compiles all, for the sizes at hand
            from workbench.sweeps.trial import warm_kernels

            warm_kernels(configuration)
        next(run.events())  # some code is made for the sizes at hand
        run.reset()
    return show_epochs(run, configuration.epochs, unit)


def _why_not_minimum(run: Run, configuration: Configuration, problem: Problem, found: Found | None) -> str:
    """Return a note if a search or dual ascent ended before the minimum of its objective, else ""."""
    if found is not None:
        return f"Note: {found.warning}" if found.warning else ""
    if configuration.execution != "dual" or not scipy.sparse.issparse(problem.x):
        return ""
    options: dict[str, Any] = {"outputs": problem.width, "has_intercept": run.setup.has_intercept}
    options |= {"decay": configuration.decay, "start": run.point}
    least = find_minimum(problem.x, problem.y, None, run.model.loss, **options)
    if least.gained < NEAR_MINIMUM:
        return ""
    return (
        f"Note: dual ascent ended {least.gained:.2g} times above the minimum of its objective.\n"
        f"Give --epochs {10 * configuration.epochs} or more, or leave out what is set: --search N reaches the minimum."
    )


def print_quality(run: Training, problem: Problem, configuration: Configuration, seconds_epoch: float) -> None:
    """Print seconds an epoch and quality of `run`, on the held-out rows, or else on those trained on if they are apart.

    It warns if a constant is as good.
    """
    begin, rows = f"{seconds_epoch:.3g} s an epoch; ", problem.held_out
    if problem.x_held_out is None:
        begin += f"all {problem.x.shape[0]:,} rows were trained on"
        if run.model.rank is not None or not run.model.rows_apart:
            print_line(f"{begin}, so no quality is known")
            return
        begin, rows = f"{begin}; on these ", (problem.x, problem.y)
    else:
        begin += "held-out "
    qualities = run.qualities(*rows)
    name, *others = (f"{name} {value:.4f}" for name, value in qualities.items())
    without_x = run.quality_without_x(*rows)
    constant = f"{constant_words(run.model.target)} gets {without_x:.4f}"
    print_line(f"{begin}{name}; {'; '.join([constant, *others])}")
    if warning := why_worse(configuration, next(iter(qualities.values())), without_x, run.model.target):
        console.print(warning, **PLAIN)


def _search(configuration: Configuration, problem: Problem, search: int | None) -> Found | None:
    """Return what a search of `search` settings of the decay comes to, which is printed: a trained model.

    None searches if the model and the data suit it, else returns None; SpecError for a count that was typed and does
    not suit.
    """
    model, setup = models.get(configuration.model), setup_of(configuration)
    reason = why_no_search(model.loss, model.is_product, problem.x.shape[0])
    reason = reason or ("" if scipy.sparse.issparse(problem.x) else "A search needs its rows in memory")
    if reason and search is not None:
        raise SpecError(f"{reason}. Leave --search out.")
    outputs = model.outputs or problem.width
    suits = problem.x.shape[0] > FEWEST_ROWS and is_small(
        problem.x.shape, outputs, np.dtype(configuration.dtype).itemsize
    )
    if reason or (search is None and not suits):
        return None
    options: dict[str, Any] = {"outputs": outputs, "has_intercept": setup.has_intercept, "seed": configuration.seed}
    options |= {"count": search or COUNT}
    with console.status("searching") as status, watched_by(lambda reached: status.update(f"searching: {reached}")):
        found = search_decay(problem.x, problem.y, None, model.loss, **options)
    print_line(f"decay {found.choice}. To change it: --search N for N settings, or --decay VALUE for one.")
    return found


def _fit_l1(configuration: Configuration, problem: Problem, search: int | None, l1_ratio: float) -> Found:
    """Return the linear model with an L1 penalty for the decay, searched if there is none; what it is is printed.

    SpecError for other models, and rows that are not in memory. Its code is loaded here: other trainings do without.
    """
    from workbench.training.l1 import fit_l1

    model, setup = models.get(configuration.model), setup_of(configuration)
    reason = why_no_search(model.loss, model.is_product, LEAST_ROWS)
    if reason or not (scipy.sparse.issparse(problem.x) or isinstance(problem.x, np.ndarray)):
        raise SpecError("An L1 penalty is for linear models whose rows are in memory. Leave --l1-ratio out.")
    options: dict[str, Any] = {"outputs": model.outputs or problem.width, "seed": configuration.seed}
    options |= {"has_intercept": setup.has_intercept, "l1_ratio": l1_ratio, "alpha": configuration.decay}
    options |= {"count": search} if search else {}
    with console.status("coordinate descent"):
        try:
            found = fit_l1(problem.x, problem.y, None, model.loss, **options)
        except SetupError as error:
            raise SpecError(str(error)) from None
    how = f"decay {found.choice}. To change it: --decay VALUE" if found.choice else f"decay {found.decay:.3g}"
    print_line(f"{how}; {np.count_nonzero(found.weights):,} of {found.weights.size:,} weights are not zero")
    return found


PHASE_WORDS = {"slice": "cutting batches", "batches": "steps in one call", "graph": "steps as one graph"}
"""Phases whose names say little without the documentation, in other words."""
PLAIN: dict[str, Any] = {"markup": False, "highlight": False, "soft_wrap": True}
"""How lines are printed that hold names of files and classes."""


def why_worse(configuration: Configuration, quality: float, without_x: float, target: str) -> str:
    """Return a warning with what to try if `quality` is not above `without_x`, that of a constant prediction, else "".

    NaN counts as worse; `target` is the type of target that words depend on.
    """
    if not (quality <= without_x or math.isnan(quality)):
        return ""
    verb = "worse than" if quality < without_x or math.isnan(quality) else "no better than"
    return (
        f"Warning: the model is {verb} {constant_words(target)} ({quality:.4f} against {without_x:.4f}).\n"
        f"Try {_other_settings(configuration)}; and check that the labels are right: 'workbench profile' shows them."
    )


def _other_settings(configuration: Configuration) -> str:
    """Return options that may train a better model than this configuration, as typed."""
    if configuration.execution == "dual":
        return f"--optimizer adam --epochs {max(configuration.epochs, 10)}, which has no decay"
    rate = (
        optimizers.get(configuration.optimizer).options["learning_rate"]
        if configuration.learning_rate is None
        else configuration.learning_rate
    )
    tries = f"--epochs {max(3 * configuration.epochs, 10)}, --learning-rate {rate / 3:.2g} or {rate * 3:.2g}"
    return tries if configuration.optimizer == "adam" else f"{tries}, --optimizer adam"


def show_problem(configuration: Configuration, problem: Problem) -> None:
    """Print a line on the data: rows, features, density, width, size if dense, licence."""
    rows, features = problem.x.shape
    density = problem.x.nnz / (rows * features)
    bytes_dense = formats.predicted_bytes("dense", rows, features, problem.x.nnz, configuration.dtype, "int32")
    licence = "" if configuration.path else f" Licence: {data.get(configuration.dataset).licence}"
    print_line(
        f"{configuration.dataset}: {format_count(rows, 'row')} x {format_count(features, 'feature')}, "
        f"density {density:.3g}, width {problem.width}; stored dense it would take {format_size(bytes_dense)}.{licence}"
    )


@dataclass
class Epoch:
    """An epoch as it is shown: its steps, the sum of their losses, and when it began."""

    number: int
    start: float
    steps: int = 0
    loss: float = 0.0
    seconds: float = 0.0

    def add(self, event: StepEvent, now: float, unit: float = 1.0) -> None:
        """Count the steps and losses, times `unit`, of an event, ended at `now` (perf_counter seconds)."""
        self.steps, self.loss = self.steps + event.steps, self.loss + event.loss * event.steps * unit
        self.seconds = now - self.start


def show_epochs(run: Training, count: int, unit: float = 1.0) -> float:
    """Train `count` epochs, showing a live table a line for each, losses times `unit`; return the seconds of all."""
    phases: Counter[str] = Counter()
    epochs: list[Epoch] = []
    shown = 0.0
    start = now = time.perf_counter()
    with live(refresh_per_second=8) as display:
        for event in run.events(count):
            if not epochs or epochs[-1].number != event.epoch:
                epochs.append(Epoch(event.epoch, now))
            now = time.perf_counter()
            epochs[-1].add(event, now, unit)
            phases.update(event.seconds)
            if now - shown > SECONDS_SHOWN:
                shown = now
                display.update(table(epochs, phases))
        display.update(table(epochs, phases))
    return time.perf_counter() - start


def table(epochs: Sequence[Epoch], phases: Counter) -> Table:
    """Return the table of the last epochs: steps, mean loss, ms a step; for the newest also shares by phase.

    `phases` has seconds by phase of all steps.
    """
    names = ("epoch", "steps", "loss", "ms a step", "share of the time")
    shown = Table(*names[: None if phases else -1])  # several trainers time no phases
    total = sum(phases.values()) or 1.0
    large = [phase for phase in PHASES if phases[phase] >= 0.005 * total]
    shares = ", ".join(f"{PHASE_WORDS.get(phase, phase)} {100 * phases[phase] / total:.0f} %" for phase in large)
    for epoch in epochs[-EPOCHS_SHOWN:]:
        milliseconds = f"{1e3 * epoch.seconds / epoch.steps:.3g}"
        cells = (str(epoch.number + 1), str(epoch.steps), f"{epoch.loss / epoch.steps:.4f}", milliseconds)
        shown.add_row(*cells, *([shares if epoch is epochs[-1] else ""] if phases else []))
    return shown


# Training by several trainers: ranks of an MPI job, whose steps are shown live.


def train_on_several(
    settings: dict[str, Any], trainers: int, folder: Path, dry_run: bool = False, sync_every: int = 1
) -> None:
    """Train by `trainers` processes of this machine, showing the progress; `folder` has checkpoints and log.

    They synchronise after every `sync_every` batches. `dry_run` only prints the commands, also for other machines.
    SpecError for settings that cannot be trained so, `workbench.cluster.training.TrainingError` if a process fails.
    """
    from workbench.cluster import training

    configuration = configuration_of({**settings, "execution": "step"}, several=True)
    known = {name: value for name, value in configuration.model_dump(mode="json").items() if value is not None}
    job = training.job_of(known, trainers, folder, sync_every=sync_every)
    if dry_run:
        each = {
            "here": (),
            "on hosts": ("mpiexec", "-n", str(trainers), "-hosts", "HOST,HOST"),
            "in SLURM": ("srun", "-n", str(trainers), "--mpi=pmi2"),
        }
        for where, launcher in each.items():
            console.print(f"{where}: {shlex.join(training.command_of(job, launcher))}", **PLAIN)
        return
    steps: dict[int, Mapping[str, Any]] = {}
    answer: dict[str, Any] = {}
    shown = 0.0
    with live(refresh_per_second=8) as display:
        for message in training.messages(job, folder):
            if "done" in message:
                answer = message["done"]
            else:
                steps[message["step"]] = message
            is_due = time.perf_counter() - shown > SECONDS_SHOWN and console.is_terminal
            if steps and (is_due or not message.get("step", 0) % next(iter(steps.values()))["steps_epoch"]):
                shown = time.perf_counter()
                display.update(trainers_table(steps))
    print_answer(answer, folder, configuration)


def save_checkpoint(folder: Path, save: Path, force: bool) -> None:
    """Keep the model of the checkpoint in `folder` in the folder `save`; ModelFolderError if that is taken."""
    from workbench.cluster.serving import load_checkpoint

    load_checkpoint(folder).save(save, force)
    console.print(f"The model is kept in {save}. To predict: workbench apply {save} FILE --out scores.csv", **PLAIN)


def trainers_table(steps: Mapping[int, Mapping[str, Any]]) -> Table:
    """Return a table of the last epochs: steps, mean loss, ms a step, from messages by step."""
    epochs: dict[int, Epoch] = {}
    for step, message in steps.items():
        number = (step - 1) // message["steps_epoch"]
        epoch = epochs.setdefault(number, Epoch(number, 0.0))
        epoch.steps, epoch.loss = epoch.steps + 1, epoch.loss + message["loss"]
        epoch.seconds += message["seconds"]
    return table([*epochs.values()], Counter())


def print_answer(answer: Mapping[str, Any], folder: Path, configuration: Configuration) -> None:
    """Print the quality of a training by several processes, from the answer of rank 0; `folder` has checkpoints."""
    qualities = ", ".join(f"{name} {value:.4f}" for name, value in answer.get("qualities", {}).items())
    print_line(f"held-out {qualities or 'rows: none'}")
    if qualities:
        quality, target = next(iter(answer["qualities"].values())), models.get(configuration.model).target
        if warning := why_worse(configuration, quality, answer["without_x"], target):
            console.print(warning, **PLAIN)
    console.print(
        f"rank 0 sent and received {format_size(answer['bytes_moved'])}; checkpoints and log: {folder}", **PLAIN
    )
