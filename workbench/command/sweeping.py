"""A sweep from the command line: what is wrong is found first, what is large is asked about, a verdict ends it."""

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

import typer
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kernels.registry import format_size
from workbench import data, formats, store
from workbench.analysis import formatting
from workbench.command import terminal
from workbench.command.data_source import print_reader, with_model
from workbench.data import contract
from workbench.data.files.nearest import nearest_file
from workbench.settings import BY_NAME, CHOICES
from workbench.study import suited
from workbench.study.suited import name_of, spec_of
from workbench.sweeps import estimate, run_folder
from workbench.sweeps import spec as specs
from workbench.sweeps.estimate import Size
from workbench.sweeps.problem import is_synthetic, make_problem
from workbench.sweeps.progress import Progress
from workbench.sweeps.spec import FILES, Configuration, Spec, SpecError

SECONDS_UNASKED, CONFIGURATIONS_UNASKED = 3600.0, 1000
"""What a sweep may take without a question."""

OF_DATA = (*FILES, "dataset", "reading", "model", "width", "kind", "positive", "merge", "epochs")
"""Settings on which it depends whether a file can be trained on."""


def is_data(path: Path) -> bool:
    """Return whether a path is data rather than a spec (.toml, or the spec.json of a run) or a run folder."""
    is_spec = path.suffix == ".toml" or path.name == run_folder.SPEC or (path / run_folder.SPEC).exists()
    return path.exists() and not is_spec


def load_sweep(path: Path | None, choices: Mapping[str, str | None], budget: float | None = None) -> tuple[Spec, Size]:
    """Return the sweep of a spec file or of choices, and its size; raises SpecError if it cannot run.

    `choices` that are None are not given; `budget` are the seconds that it may take, instead of the spec's. Data files
    are read to find mistakes early.
    """
    chosen = {name: value for name, value in choices.items() if value is not None}
    if path is not None and chosen:
        given = formatting.join_items(CHOICES[name].option for name in chosen)
        raise SpecError(f"Both a spec and {given} are given; change the spec, or leave it out and choose everything.")
    if path is None and not chosen:
        raise SpecError(
            "No data and no spec is given; expected a file, a data set, or a TOML file of a sweep.\n"
            "Type workbench sweep train.txt, workbench sweep --dataset stdlib, or workbench sweep my_sweep.toml."
        )
    spec = _read(path) if path is not None else _spec_of_choices(chosen)
    if budget is not None:
        spec = spec.model_copy(update={"limits": spec.limits.model_copy(update={"budget": budget})})
    size = estimate.size_of(spec)
    refuse_wrong_files(size)
    return spec, size


def _read(path: Path) -> Spec:
    """Return the spec in a file; SpecError, with a hint, for a folder or an invalid file."""
    if path.is_dir():
        kept = path / run_folder.SPEC
        hint = f"take {kept}" if kept.exists() else "give a TOML file"
        raise SpecError(f"{path} is a folder; {hint}.")
    if not path.exists() and path.suffix not in (".toml", ".json"):
        raise SpecError(f"There is no file {path}; give the path of data, or of a sweep in TOML.{nearest_file(path)}")
    return specs.load_spec(path)


def _spec_of_choices(chosen: Mapping[str, str]) -> Spec:
    """Return the spec that the panel would make of these choices, named after its data.

    Reader and model are guessed if needed, which is printed. SpecError if a choice is invalid.
    """
    if "path" in chosen and "dataset" not in chosen:
        guessed, why = suited.guess_reader(chosen["path"], chosen.get("reading", ""))
        print_reader(chosen["path"], guessed["dataset"], why)
        chosen = {**chosen, **guessed}
    if "path" in chosen and not {"model", "width"} & set(chosen):
        chosen = with_model({**chosen, "reading": contract.reader_options(chosen.get("reading"))})
    complete = suited.complete_with_suggestions(chosen)
    suited.refuse_unread(chosen, complete["dataset"])
    return spec_of(complete, name_of(complete))


def refuse_wrong_files(size: Size) -> None:
    """Read the user's data of every kind of configuration once; SpecError if one cannot be used."""
    own = [
        configuration
        for configuration in size.kinds
        if not is_synthetic(configuration.dataset) and configuration.path is not None
    ]
    different = {tuple(getattr(configuration, name, None) for name in OF_DATA): configuration for configuration in own}
    if not different:
        return
    with terminal.console.status("reading the data"):
        for configuration in different.values():
            _try_to_read(configuration)


def _try_to_read(configuration: Configuration) -> None:
    """Read the data of a configuration once; SpecError if it cannot be used. Too little memory is ignored."""
    try:
        make_problem(configuration)
    except (data.DataError, formats.FormatError) as error:
        raise SpecError(f"{configuration.dataset} with the {configuration.model} model: {error}") from None
    except MemoryError:  # the trial has a process and limits of its own, and its row will say so
        pass


def confirm_large_sweep(spec: Spec, size: Size, seconds: tuple[float, float]) -> None:
    """Ask in the terminal whether to start a large sweep; Abort on "no", SpecError without a terminal.

    `seconds` is (least, most). Small sweeps are not asked about.
    """
    if size.configurations <= CONFIGURATIONS_UNASKED and seconds[0] <= SECONDS_UNASKED:
        return
    what = (
        f"{spec.name} has {formatting.format_count(size.configurations, 'configuration')}, {_trials(size)}, "
        f"{estimate.format_time_span(seconds)}"
    )
    if not has_terminal():
        raise SpecError(f"{what}. There is no terminal to ask whether to start it; add --yes to start it unasked.")
    typer.confirm(f"{what}. Start it?", abort=True)


def has_terminal() -> bool:
    """Return whether standard input is a terminal, so that the user can be asked."""
    return sys.stdin.isatty()


def dry_run(spec: Spec, size: Size, folder: Path, cluster: str | None) -> None:
    """Print what a sweep would do: configurations, what is left out and why, time and memory; starts nothing."""
    rows = run_folder.read_all_records(folder)
    seconds = estimate.seconds_of(size, spec, rows)
    shown = Table(title=f"{spec.name}: nothing was started", show_header=False, title_justify="left")
    shown.add_row("configurations", f"{size.configurations:,}, dense steps on all threads and on one")
    shown.add_row("rounds", f"up to {size.rounds}, fewer where a comparison is decided; {_trials(size)}")
    shown.add_row("precision", estimate.minimum_detectable_sentence(spec))
    changed = {axis: values for axis, values in spec.axes.items() if values != (BY_NAME[axis].default,)}
    for axis, values in changed.items():
        named = ["natural" if value is None else str(value) for value in values]
        shown.add_row(axis, ", ".join(named if len(named) <= 12 else [*named[:10], f"... {len(named):,} in all"]))
    for number, candidate in enumerate(spec.candidates, 1):
        settings = ", ".join(f"{name} {value}" for name, value in candidate.items())
        shown.add_row(f"candidate {number}", settings)
    epochs = max(configuration.epochs for configuration in size.kinds)
    trained = f", and what {epochs} epochs a trial take" if epochs else ""
    shown.add_row("time", f"{estimate.format_time_span(seconds)}{trained}")
    shown.add_row("memory", _memory_sentence(size))
    done = f"; {len(rows):,} rows are there, and those that answer this spec are not measured again" if rows else ""
    shown.add_row("run folder", f"{folder}{done}")
    if cluster is not None:
        shown.add_row("measured by", f"the machines of {cluster}")
    terminal.console.print(shown)
    print_excluded(size)


def _trials(size: Size) -> str:
    """Return the number of trials as text, "24 trials" or "8 to 24 trials"."""
    if size.trials == size.trials_most:
        return formatting.format_count(size.trials, "trial")
    return f"{size.trials:,} to {size.trials_most:,} trials"


def _memory_sentence(size: Size) -> str:
    """Return a phrase on the most bytes that a trial's arrays take by formula; reads data files."""
    with terminal.console.status("reading the data"):
        largest = max(size.kinds, key=estimate.bytes_of)
        needed = estimate.bytes_of(largest)
    return f"at most about {format_size(needed)} for the arrays of a trial ({largest.format}, {largest.model})"


def print_excluded(size: Size) -> None:
    """Print the combinations that are left out, with the reasons, and the settings that were completed."""
    excluded = [f"{count:,} of the configurations left out: {reason}" for reason, count in size.dropped.items()]
    for line in (*excluded, *size.notes):
        terminal.console.print(Padding(Text(line, style="yellow"), (0, 0, 0, 2)))


def start(spec: Spec, size: Size, folder: Path, cluster: str | None) -> None:
    """Start a sweep in a separate process; print what is left out, its precision and how to stop it.

    A warning is printed if `folder` has records of another sweep. `cluster` None measures here. Raises RunError if in
    use.
    """
    taken_over = run_folder.replaced_records_warning(folder, spec)
    run_folder.start_run(spec, folder, cluster)
    print_excluded(size)
    terminal.console.print(estimate.minimum_detectable_sentence(spec), highlight=False, markup=False)
    if taken_over:
        terminal.console.print(taken_over, style="yellow", highlight=False, markup=False)
    stopping = shlex.join(["workbench", "stop", str(folder)])
    where = f"Runs in {folder}, also without this terminal. Stop it with: {stopping}"
    terminal.console.print(where, highlight=False, markup=False, soft_wrap=True)


def conclude(folder: Path) -> Progress:
    """Print the verdict of a run that has ended and the command for its report; return its progress."""
    rows = run_folder.read_answer_records(folder)
    if any(row["status"] in ("ok", "disturbed") for row in rows):
        terminal.conclude(store.frame(rows))
    if rows:
        report = shlex.join(["workbench", "report", str(folder)])
        terminal.console.print(f"Its report: {report}", highlight=False, markup=False, soft_wrap=True)
    return run_folder.read_progress(folder)
