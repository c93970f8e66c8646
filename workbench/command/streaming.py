"""Training on a file block by block, with the losses shown live; Ctrl-C keeps the model so far."""

import math
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer
from rich.table import Table

from kernels.registry import format_count, format_size, nearest_name
from workbench import data
from workbench.command import exit_codes
from workbench.command.console import console, live, print_line
from workbench.command.output import echo
from workbench.command.training import PLAIN, SECONDS_SHOWN, on_threads
from workbench.data.labels import Wanted
from workbench.data.stored.converting import OF_LABELS
from workbench.formats.files import bytes_memory
from workbench.measure import memory as process_memory
from workbench.option_text import worded
from workbench.sweeps.problem import parameters_of_file
from workbench.training.streaming import USUAL_MEMORY, FileTraining, Options, Progress, interruptible
from workbench.training.trained import refuse_taken

HELD_OUT = 0.1
SHARE_OF_MEMORY = 4
"""A file of more than this share of the memory is trained on block by block."""
TAKEN = (
    *("source", "dataset", "path", "kind", "positive", "reading", "columns", "label", "model", "intercept", "threads"),
    *("optimizer", "learning_rate", "decay", "batch_rows", "held_out", "save", "force"),
    *("stream", "memory", "bits", "passes"),
)
"""Options of `train` that are taken with --stream."""
OF_STREAM = ("memory", "bits", "passes")
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kMGT]?)i?B?", re.IGNORECASE)
_UNITS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def bytes_of(text: str) -> int:
    """Return the bytes that a size such as "64MB" or "1.5 GB" means; BadParameter for other text.

    >>> bytes_of("64MB"), bytes_of("1.5 GB"), bytes_of("4096")
    (64000000, 1500000000, 4096)
    """
    if not (found := _SIZE.fullmatch(text.strip())):
        raise typer.BadParameter(f"{text!r}; expected a size such as 64MB.", param_hint="--memory")
    return int(float(found[1]) * 1000 ** _UNITS[found[2].lower()])


def is_streamed(ctx: typer.Context, stream: bool | None, settings: Mapping[str, Any]) -> bool:
    """Return whether the file is trained on block by block: if asked, else if it is large and every option suits.

    BadParameter for an option that does not go with --stream, or only with it.
    """
    other = next((name for name in ctx.params if name not in TAKEN and not exit_codes.is_default(ctx, name)), "")
    only = next((name for name in OF_STREAM if not exit_codes.is_default(ctx, name)), "")
    if stream is None and not only:
        path, source = settings.get("path"), data.get(settings["dataset"])
        if other or path is None or not Path(path).is_file() or (source.stream or source.blocks) is None:
            return False
        size = Path(path).stat().st_size
        if size <= bytes_memory() // SHARE_OF_MEMORY:
            return False
        share = f"more than 1/{SHARE_OF_MEMORY} of the memory"
        echo(f"{path} has {format_size(size)}, {share}: it is read block by block. Or type --no-stream.", err=True)
        return True
    option = f"--{(other or only).replace('_', '-')}"
    if stream is False and only:
        raise typer.BadParameter("it is for training block by block. Leave --no-stream out.", param_hint=option)
    if stream is not False and other:
        instead = f"Type --{near}" if (near := nearest_name(other, OF_STREAM)) else "Leave one out"
        raise typer.BadParameter(f"it does not go with --stream. {instead}.", param_hint=option)
    if stream is not False and "path" not in settings:
        raise typer.BadParameter("it reads a file block by block; give one as SOURCE.", param_hint="--stream")
    return stream is not False


def train(
    ctx: typer.Context,
    settings: dict[str, Any],
    save: Path | None,
    force: bool,
    memory: str = "",
    bits: int | None = None,
    passes: int = 1,
) -> None:
    """Train on the file of the settings block by block, show the losses, and keep the model in the folder `save`.

    An interrupted training in that folder is resumed unless `force`. DataError if it cannot be trained so.
    """
    parameters = parameters_of_file(settings)
    labels = {name: parameters.pop(name) for name in OF_LABELS if name in parameters}
    wanted = Wanted(**({"positive": settings.get("positive")} | labels))
    asked = {name: settings[name] for name in ("model", "optimizer", "batch_rows") if _is_given(ctx, name)}
    options = {name: settings[name] for name in ("learning_rate", "decay") if _is_given(ctx, name)}
    intercept = settings.get("intercept") if _is_given(ctx, "intercept") else None
    held_out = settings["held_out"] if _is_given(ctx, "held_out") else HELD_OUT
    chosen = Options(passes, held_out, wanted, options=options, intercept=intercept, **asked)
    size = bytes_of(memory) if memory else USUAL_MEMORY
    made = FileTraining(str(settings["dataset"]), parameters, chosen, size, bits)
    if save is not None and not force and made.resume(save):
        done = made.training
        echo(f"{save} holds an interrupted training; it goes on after {done.sums.rows:,} rows. To begin anew: --force.")
        force = True
    elif save is not None:
        refuse_taken(save, force)
    for line in made.stream.facts.get("guesses", ()):
        echo(worded(line), err=True)
    with on_threads(settings.get("threads")), interruptible() as is_interrupted:
        is_complete = _show(made, is_interrupted)
    training = made.training
    if training.learner is None:
        exit_codes.exit_interrupted(ctx)
    qualities = "; ".join(f"{name} {value:.4g}" for name, value in training.held_out_quality().items())
    rows, columns = format_count(training.rows_all, "row"), format_count(training.features, "feature")
    print_line(f"{rows} x {columns} in {training.seconds:.3g} s; held-out {qualities or 'rows: none'}")
    if warning := training.warning():
        console.print(worded(warning), **PLAIN)
    print_line(f"memory: the process's peak was {format_size(process_memory.peak_bytes())}, libraries included")
    if save is not None:
        made.save(save, force)
        console.print(f"The model is kept in {save}. To predict: workbench apply {save} FILE --out scores.csv", **PLAIN)
    if not is_complete:
        kept = f"the model of {training.sums.rows:,} rows of pass {training.number + 1} is kept" if save else "not kept"
        exit_codes.exit_interrupted(ctx, f"Interrupted: {kept}")


def _is_given(ctx: typer.Context, name: str) -> bool:
    """Return whether an option was typed."""
    return not exit_codes.is_default(ctx, name)


def _show(made: FileTraining, is_interrupted: Any) -> bool:
    """Train with a live table of the passes; return whether it came to the end, not `is_interrupted` before."""
    passes: dict[int, Progress] = {}
    shown, start = 0.0, time.perf_counter()
    with live(refresh_per_second=8) as display:
        for progress in made.training.events():
            passes[progress.number] = progress
            if progress.note:
                console.print(progress.note, **PLAIN)
            if time.perf_counter() - shown > SECONDS_SHOWN:
                shown = time.perf_counter()
                display.update(table([*passes.values()], made.stream.end, shown - start))
            if is_interrupted():
                break
        display.update(table([*passes.values()], made.stream.end, time.perf_counter() - start))
    return made.training.number >= made.training.options.passes


def table(passes: Sequence[Progress], end: int | None, seconds: float) -> Table:
    """Return a table with a line for each pass: rows, losses, and of the last one how much is read and how fast."""
    shown = Table("pass", "rows", "loss before learning", "held-out loss", "read")
    for one in passes:
        is_last = one is passes[-1]
        read = f"{min(one.position / end, 1):.0%} of {format_size(end)}" if end else ""
        read = f"{read}, {sum(part.position for part in passes) / seconds / 1e6:.2g} MB/s" if is_last and end else read
        losses = ("" if math.isnan(loss) else f"{loss:.4g}" for loss in (one.loss, one.held_out))
        shown.add_row(f"{one.number + 1} of {one.passes}", f"{one.rows:,}", *losses, read)
    return shown
