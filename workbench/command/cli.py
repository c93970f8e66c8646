"""The command line: one sub-command per public function, nothing else. Imports wait until a command needs them."""

import json as json_format
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from workbench.command import data_commands, exit_codes, options
from workbench.command.options import with_options
from workbench.command.output import echo, escape_line
from workbench.settings import CHOICES, LABEL, SETTINGS

SHOWN = 10
"""Rows that are shown if no file is written."""
RECOMMENDERS = ("als", "ease")
"""Values of --model of train that are no models of gradient steps: they fit a `workbench.Recommender`."""


def apply(
    model: Annotated[Path, typer.Argument(metavar="MODEL")],
    source: Annotated[Path, typer.Argument(metavar="SOURCE")],
    out: Path | None = None,
    labels: Path | None = None,
    force: bool = False,
    quote_formulas: bool = False,
) -> None:
    """Predict the rows of a file with a saved model, and print its quality if the file has labels.

    A recommender lists the best new items of each user in the file instead.

    Parameters
    ----------
    model
        Folder that train --save wrote, or the folder of checkpoints of train --trainers.
    source
        File to predict, of the kind trained on.
    out
        CSV file to write: row, prediction, a probability a class.
    labels
        File of labels (.npy or text), to measure quality.
    force
        Replace the file of --out.
    quote_formulas
        Write class names that a spreadsheet would run, such as =1+1, with an apostrophe before.

    Examples
    --------
    workbench apply model/ new.txt
    workbench apply model/ new.txt --out scores.csv
    """
    from kernels.registry import format_count
    from workbench.training.trained import (
        ABOUT,
        ModelFolderError,
        TrainedModel,
        lines_of_predictions,
        load_model,
        write_predictions,
    )

    is_checkpoint = (model / "manifest.json").is_file() and not (model / ABOUT).is_file()
    if out is not None and out.exists() and not force:
        raise ModelFolderError(f"{out} is there already.\nType --force to replace it.")
    if model.is_file() and (source / ABOUT).is_file():
        raise ModelFolderError(f"The model comes first: {model} is a file.\nType workbench apply {source} {model}.")
    if is_checkpoint:
        from workbench.cluster.serving import load_checkpoint

        made: Any = load_checkpoint(model)
    else:
        made = load_model(model)
    if not isinstance(made, TrainedModel):
        from workbench.command import recommending

        recommending.apply(made, source, out, force)
        return
    applied = made.apply_in_blocks(source, labels)
    if out is not None:
        echo(f"{out}: {format_count(write_predictions(out, applied, force, quote_formulas), 'row')}")
    else:
        count = 0
        for part in applied:
            head, *lines = lines_of_predictions(part, max(SHOWN - count, 0), first=count)
            for line in lines if count else [head, *lines]:
                echo(escape_line(",".join(line)))
            count += len(part.values)
        if count > SHOWN:
            echo(f"... {count:,} rows in all. Type --out scores.csv to write them.")
    if applied.note:
        echo(f"No quality: {applied.note}.", err=True)
    else:
        echo("quality: " + ", ".join(f"{name} {value:.4f}" for name, value in applied.quality.items()))


app = typer.Typer(
    cls=exit_codes.Commands,
    help="Would sparse tensors reduce my training time and memory: in which format, on which device, from which "
    "density on?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(data_commands.data, name="data", no_args_is_help=True)
app.command("profile")(data_commands.profile)
Markdown = Annotated[bool, typer.Option("--markdown", help="Markdown instead of HTML, as for an --out *.md.")]
Root = Annotated[Path, typer.Option(help="Folder that runs are looked for in.")]
Folder = Annotated[Path, typer.Option(help="Folder for the runs.")]


@app.callback(invoke_without_command=True)
def about(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    """Would sparse tensors reduce my training time and memory: in which format, on which device, from which density?"""
    if version:
        import workbench

        echo(f"sparse-workbench {workbench.__version__}")
        raise typer.Exit


@app.command()
def demo(root: Folder = Path("runs/demo"), quick: bool = False) -> None:
    """Train sparse and dense on real data, sweep density and format, print the verdict and the report's path.

    Parameters
    ----------
    quick
        Three densities, no training: a minute, and the first time beside other programs several.

    Examples
    --------
    workbench demo
    workbench demo --quick
    """
    from workbench.command import demo, terminal

    start, rows = time.monotonic(), []
    if not quick:
        rows = demo.train_both(root, terminal.follow)
        terminal.console.print(terminal.trained_table(rows))
    rows = rows + demo.sweep_density(root, terminal.follow, quick, time.monotonic() - start)
    terminal.conclude(*demo.conclude(rows, root, quick))


@app.command()
@data_commands.with_files
def advise(
    ctx: typer.Context,
    source: data_commands.Named,
    model: str = "",
    budget: float = 60.0,
    optimizer: str = "adagrad",
    batch_rows: Annotated[int | None, typer.Option(min=1)] = None,
    device: str = "",
    framework: Annotated[str, typer.Option("--for")] = "",
    lazy: bool = False,
    run: Path | None = None,
    json: data_commands.Json = False,
    epochs: Annotated[int, typer.Option(min=1)] = 20,
    **files: str,
) -> None:
    """Say what to train your data with: sparse or dense, how, how much faster; measured here, within a minute.

    Parameters
    ----------
    model
        What is trained, by default what suits the labels; als or ease compares these two on who took what.
    budget
        Seconds that it may take, 5 or more.
    optimizer
        Rule by which a gradient changes the weights.
    batch_rows
        Rows of a batch; by default 256, and a larger one is tried.
    device
        cpu or cuda alone; by default all there are.
    framework
        pytorch, tensorflow, keras, jax or sklearn: which way to train inside that framework; then 120 seconds.
    lazy
        An update may be recommended that trains another model than dense.
    run
        Run folder, by default runs/advise-DATA-MODEL, with a hash of the file's path; resumed if it exists.
    epochs
        Passes over the data that training times are said for.

    Examples
    --------
    workbench advise train.txt
    workbench advise clicks.csv --label clicked --budget 30
    workbench advise train.txt --for pytorch
    workbench advise taken.csv --model als
    """
    from workbench.command import advising

    if model in RECOMMENDERS:
        from workbench.command import recommending

        recommending.advise(source, json)
        return
    if framework:
        asked = None if exit_codes.is_default(ctx, "budget") else budget
        advising.show_framework(source, framework, files, asked, batch_rows, json)
        return
    given = {"model": model, "optimizer": optimizer, "batch_rows": batch_rows, "device": device}
    answer = advising.advise(source, files, given, budget, lazy, run, json, epochs)
    if answer.is_stopped:
        exit_codes.exit_interrupted(ctx, "Stopped")
    if answer.recommendation.verdict == "none":
        raise typer.Exit(exit_codes.WRONG_INPUT)


PLACES = "Measure on the machines of a Dask cluster: its scheduler's address, tls://HOST:PORT; or local, to try it."


@app.command()
@with_options(*CHOICES.values(), LABEL)
def sweep(
    ctx: typer.Context,
    spec: Annotated[Path | None, typer.Argument()] = None,
    run: Path | None = None,
    detach: bool = False,
    dry_run: bool = False,
    yes: bool = False,
    cluster: Annotated[str | None, typer.Option(help=PLACES)] = None,
    budget: Annotated[float | None, typer.Option(min=1)] = None,
    json: bool = False,
    **choices: str | None,
) -> None:
    """Measure sparse against dense on your data, or run the sweep of a file; after Ctrl-C the same command goes on.

    Dense training is always measured, in all its forms.

    Parameters
    ----------
    spec
        Your data, as --path; or a spec: a TOML file, or the spec.json of a run (examples: workbench/specs).
    run
        Run folder, by default runs/NAME; resumed if it exists.
    detach
        Start it and return at once.
    dry_run
        Say what it would measure, how long and in how much memory; start nothing.
    yes
        Start it unasked, also above an hour or 1,000 configurations; for scripts.
    budget
        Seconds that the sweep may take, instead of the spec's.
    json
        Print the answer of each density as JSON at the end, all else to stderr.

    Examples
    --------
    workbench sweep train.txt --budget 60
    workbench sweep --path train.txt --density "0.01, 0.1" --format "csr, coo"
    workbench sweep my_sweep.toml --dry-run
    """
    from workbench.command import sweeping, terminal
    from workbench.sweeps import estimate, run_folder

    if json and (detach or dry_run):
        raise typer.BadParameter("--json prints what was measured; leave out --detach and --dry-run.")
    if spec is not None and sweeping.is_data(spec) and not choices.get("path"):
        spec, choices["path"] = None, str(spec)
    if label := choices.pop("label"):
        from workbench.data import contract

        choices["reading"] = str(contract.with_label(contract.reader_options(choices["reading"]), label))
    with terminal.messages_on_stderr(json):
        settings, size = sweeping.load_sweep(spec, choices, budget)
        folder = run or run_folder.ROOT / settings.name
        if cluster is not None:
            run_folder.check_cluster(cluster)
        if dry_run:
            sweeping.dry_run(settings, size, folder, cluster)
            return
        if not yes:
            sweeping.confirm_large_sweep(settings, size, estimate.seconds_of(size, settings))
        with run_folder.stopped_by_interrupt(folder):
            sweeping.start(settings, size, folder, cluster)
            if detach:
                return
            terminal.follow(settings.name, folder)
        state = sweeping.conclude(folder)
    if json:
        _print_answers([folder])
    exit_codes.exit_unless_finished(ctx, state.state)


@app.command()
def status(run: Annotated[str | None, typer.Argument()] = None, root: Root = Path("runs")) -> None:
    """List all sweeps: state, trials done, time left, process and folder; also those whose process died.

    Parameters
    ----------
    run
        A run folder, or the name of a run; by default all.

    Examples
    --------
    workbench status
    workbench status my-sweep
    """
    from workbench.command import console, running

    runs = running.find(root) if run is None else [running.choose(run, root)]
    if not runs:
        echo(f"There is no run under {root}, and no sweep running elsewhere.")
        return
    console.console.print(running.table(runs))
    for one in runs:
        if run is not None or one.progress.message:
            console.print_run_lines(one.folder, running.lines(one))


@app.command()
def stop(
    run: Annotated[str | None, typer.Argument()] = None,
    all_runs: Annotated[bool, typer.Option("--all")] = False,
    root: Root = Path("runs"),
) -> None:
    """Stop a running sweep: its trial ends within a second, finished records are kept, and it can be resumed.

    Parameters
    ----------
    run
        A run folder, or the name of a run; by default the running one.
    all_runs
        Every running sweep.

    Examples
    --------
    workbench stop
    workbench stop my-sweep
    """
    from workbench.command import running

    for one in running.to_stop(run, all_runs, root):
        state = running.stop(one)
        echo(f"{one.folder}: {state.state}, {state.done} of {state.total} trials done.")


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...")],
    out: Path | None = None,
    markdown: Markdown = False,
    results: Path | None = None,
    json: bool = False,
    quote_formulas: bool = False,
    interactive: bool = False,
) -> None:
    """Write the report of runs: headline, verdict table, charts, sentences, tables, all records and their samples.

    Parameters
    ----------
    runs
        Run folders or .jsonl files of records, for one report.
    out
        File to write, by default report.html next to the records: .html, .md, or the records
        alone as .csv or .parquet.
    results
        Put records, report and charts of each run into this folder, such as results/MACHINE.
    json
        Print the answer of each density as JSON for programs; write nothing.
    quote_formulas
        In a .csv, write texts that a spreadsheet would run, such as =1+1, with an apostrophe before.
    interactive
        In HTML, let charts answer to the pointer, by Plotly's script, which adds 2 MB.

    Examples
    --------
    workbench report runs/my-sweep
    workbench report runs/my-sweep --out report.html
    """
    from workbench.reports import export
    from workbench.reports import results as kept

    if json:
        if out is not None or results is not None or markdown:
            raise typer.BadParameter("--json prints; leave out --out, --results and --markdown.")
        _print_answers(runs)
        return
    if results is not None:
        export.refuse_options(out, markdown)
    written = [file for run in runs for file in kept.put(run, results)] if results else []
    options: dict[str, Any] = {"markdown": markdown, "quote_formulas": quote_formulas, "interactive": interactive}
    for path in written or [export.write_report(runs, out, **options)]:
        echo(path)


def _print_answers(runs: list[Path]) -> None:
    """Print the answer of each density of the runs as JSON to standard output."""
    from workbench.reports import export
    from workbench.reports.export import answers

    echo(json_format.dumps(answers(export.answer_frame_of(runs)), indent=1, allow_nan=False))


@app.command()
def compare(
    before: str,
    after: str,
    within: Annotated[float, typer.Option(min=1.001)] = 1.1,
    out: Path | None = None,
) -> None:
    """Say which configurations are slower, faster, the same or ambiguous in a second run, corrected for drift.

    Exit status, for CI: 0 if nothing is significantly worse (ambiguous is not), 1 if a configuration is
    significantly slower, takes significantly more memory, or no longer has a result, 2 for wrong input.

    Parameters
    ----------
    before
        A run folder, a .jsonl file of records, or REVISION:FILE, a file at a git commit.
    after
        The same, of a later run.
    within
        The factor up to which two times are the same.
    out
        Markdown file to write as well, for a pull request.

    Examples
    --------
    workbench compare runs/before runs/after
    workbench compare runs/before runs/after --within 1.2
    """
    from workbench.command import comparing

    comparing.run(before, after, within, out)


@app.command()
def race(
    commands: Annotated[list[str], typer.Argument(metavar="COMMAND COMMAND...")],
    budget: Annotated[float, typer.Option(min=0.1)] = 30.0,
    out: Path | None = None,
    json: Annotated[bool, typer.Option("--json")] = False,
) -> None:
    """Time whole commands against each other and say which is faster, by how much and how certain that is.

    Processes run in interleaved rounds, from their start to their end; memory is their peak of resident memory.

    Parameters
    ----------
    commands
        Two or more commands, each in quotes; no shell runs.
    budget
        Seconds for the rounds, at least four; each runs three times before.
    out
        Page of HTML to write as well; with the ending .json what was measured.
    json
        Print what was measured as JSON.

    Examples
    --------
    workbench race "python a.py" "python b.py"
    workbench race "python a.py" "python b.py" --budget 120 --out race.html
    """
    from workbench.advising.racing import race_commands

    outcome = race_commands(commands, budget=budget)
    if out is not None:
        outcome.save(out) if out.suffix == ".json" else outcome.report(out)
    echo(outcome.to_json() if json else str(outcome))
    if out is not None:
        echo(out, err=json)


@app.command()
@with_options(*SETTINGS, as_text=False)
def train(
    ctx: typer.Context,
    source: Annotated[str, typer.Argument(metavar="SOURCE", show_default=False)] = "",
    label: data_commands.Label = "",
    save: Annotated[Path | None, typer.Option(show_default=False)] = None,
    search: Annotated[int | None, typer.Option(show_default=False)] = None,
    l1_ratio: Annotated[float, typer.Option(min=0, max=1)] = 0.0,
    held_out: Annotated[float, typer.Option(min=0, max=0.9)] = 0.2,
    stream: Annotated[bool | None, typer.Option("--stream/--no-stream", show_default=False)] = None,
    memory: Annotated[str, typer.Option(metavar="SIZE", show_default=False)] = "",
    bits: Annotated[int | None, typer.Option(min=1, max=30, show_default=False)] = None,
    passes: Annotated[int, typer.Option(min=1)] = 1,
    force: bool = False,
    checkpoints: Path = Path("runs/train"),
    sync_every: Annotated[int, typer.Option(min=1)] = 1,
    dry_run: bool = False,
    **options: Any,
) -> None:
    """Train one configuration and show its loss live, then seconds an epoch, phases, memory and held-out quality.

    Parameters
    ----------
    source
        Your file or folder, or the name of a data set.
    save
        Folder to keep the trained model in, for 'workbench apply'.
    search
        Settings to choose --decay from, on held-out rows of those trained on, by dual ascent; 0: none. By default
        8, if no option of how to train is given.
    l1_ratio
        Share of the L1 norm in the penalty of a linear model, whose weights are then zero but for some; the rest is
        L2, and --decay is what multiplies both. 0: L2 alone.
    held_out
        Share of the rows held out to measure quality; 0 trains on all. With --stream 0.1 by default.
    stream
        Read the file block by block, and train a linear model a row at a time; by default if the file is larger than a
        quarter of the memory. Ctrl-C keeps the model so far; the same command goes on.
    memory
        Memory for blocks of rows with --stream, such as 64MB; by default 32MB.
    bits
        Hash columns to 2**bits with --stream.
    passes
        Times that the file is read with --stream.
    force
        Replace the model in the folder of --save.
    checkpoints
        Folder of checkpoints and log of --trainers; resumed if it has some.
    sync_every
        Batches after which --trainers synchronise; above 1 each trains a copy of the weights of a linear model
        meanwhile (local SGD), which is faster and has another loss.
    dry_run
        Print the commands that start --trainers here, on other hosts and in SLURM; start nothing.

    Examples
    --------
    workbench train train.txt --save model/
    workbench train train.txt --stream --passes 2 --save model/
    workbench train clicks.csv --label clicked --epochs 3
    workbench train train.txt --l1-ratio 1 --save model/
    workbench train likes.tsv --reading implicit=true
    workbench train taken.csv --model als --width 64 --save model/
    """
    from workbench.command import data_source, training

    if options["model"] in RECOMMENDERS:
        from workbench.command import recommending

        recommending.refuse_others(ctx)
        given = {name: options[name] for name in recommending.NAMES if not exit_codes.is_default(ctx, name)}
        recommending.train(source or str(options["path"] or ""), options["model"], given, save, force)
        return
    from kernels.registry import unknown_name
    from workbench import models

    if options["model"] not in models.names():
        known = unknown_name("model", options["model"], [*models.names(), *RECOMMENDERS])
        raise typer.BadParameter(known, param_hint="--model")
    settings = {name: value for name, value in options.items() if value is not None}
    settings = data_source.with_source(settings, source, label, exit_codes.is_default(ctx, "dataset"))
    from workbench.command import streaming

    if l1_ratio:
        training.refuse_with_l1(ctx, stream)
        stream = False
    if streaming.is_streamed(ctx, stream, settings):
        streaming.train(ctx, settings | {"held_out": held_out}, save, force, memory, bits, passes)
        return
    if settings["trainers"] == 1 and not l1_ratio:
        search = training.settings_to_search(ctx, search)
    if exit_codes.is_default(ctx, "model"):
        settings = data_source.with_model(settings)
    trainers = settings.pop("trainers")
    if trainers == 1:
        if sync_every > 1:
            raise typer.BadParameter(
                "one trainer synchronises with no other. Give --trainers.", param_hint="--sync-every"
            )
        training.train(settings, save, force, search, held_out, l1_ratio)
        return
    training.refuse_of_several(ctx, search)
    training.train_on_several(settings, trainers, checkpoints, dry_run, sync_every)
    if save is not None and not dry_run:
        training.save_checkpoint(checkpoints, save, force)


app.command()(apply)


@app.command()
def lab(
    notebooks: Annotated[Path | None, typer.Argument()] = None,
    port: Annotated[int | None, typer.Option(min=1, max=65535)] = None,
    ip: str | None = None,
    no_browser: bool = False,
    allow_root: bool = False,
) -> None:
    """Open JupyterLab on the notebooks.

    Parameters
    ----------
    notebooks
        Folder to open; by default the project's notebooks.
    port
        By default 8888, or the next that is free.
    ip
        Address to listen at; 0.0.0.0 for a container's published port.
    no_browser
        Open no browser; implied in a container.
    allow_root
        Run as root; implied for root.

    Examples
    --------
    workbench lab
    workbench lab my_notebooks --port 8889
    """
    from workbench.command import jupyter

    jupyter.start(notebooks, jupyter.options_of(port, no_browser, allow_root, ip))


@app.command()
@data_commands.with_files
def check(
    source: data_commands.Named,
    framework: Annotated[str, typer.Option("--for")],
    width: Annotated[int, typer.Option(min=0)] = 0,
    like: str = "",
    json: data_commands.Json = False,
    **files: str,
) -> None:
    """Check data for a framework: one line per problem; exit status 1 on errors.

    Parameters
    ----------
    framework
        Framework that will read the data: tensorflow, keras, pytorch or sklearn.
    width
        Columns that the model has; 0: those of the data.
    like
        File that the model was trained on, with its columns and its codes of categories.

    Examples
    --------
    workbench check train.txt --for pytorch
    workbench check clicks.csv --for sklearn --label clicked
    """
    from workbench.command import data_checks

    data_checks.show(data_checks.check_source(source, framework, width, like, **files), json)


@app.command()
def doctor() -> None:
    """Say what this machine has (cores, memory, BLAS, threads, GPU or why none) and what to fix before measuring.

    Examples
    --------
    workbench doctor
    """
    from workbench.command import console, doctor

    console.console.print(doctor.findings_table(doctor.examine()))


@app.command()
def warm(cases: Annotated[list[str] | None, typer.Argument(metavar="CASE")] = None) -> None:
    """Compile the code of common trainings now, so that the first training of each kind need not wait for it.

    Parameters
    ----------
    cases
        adagrad-steps, adam-epochs and so on; a wrong name lists all. By default all.

    Examples
    --------
    workbench warm
    workbench warm adagrad-steps
    """
    from workbench.command import warming

    seconds = warming.warm(cases or [])
    echo(f"The code is in the cache. It took {seconds:.1f} s; the next time it is loaded.")


options.add_help_texts(app)


def main() -> None:
    """Run the command line and exit with its status: user errors print one message, defects a traceback."""
    exit_codes.run(app)


if __name__ == "__main__":
    main()
