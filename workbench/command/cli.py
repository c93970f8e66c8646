"""The command line: one sub-command per public function, nothing else. Imports wait until a command needs them."""

import csv
import json as json_format
import os
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any

import typer

from workbench.aliases import END
from workbench.command import data_commands, exit_codes, options
from workbench.command.bench import Markdown
from workbench.command.bench_waits import bench
from workbench.command.options import CHOSEN, with_choices, with_label_and_seconds, with_settings

# The command `apply`: a saved model predicts the rows of a file, into a CSV file or onto the screen.


SHOWN = 10
"""Rows that are shown if no file is written."""


def apply(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Folder that train --save wrote.")],
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="File to predict, of the kind trained on.")],
    out: Annotated[Path | None, typer.Option(help="CSV file to write: row, prediction, a probability a class.")] = None,
    labels: Annotated[Path | None, typer.Option(help="File of labels (.npy or text), to measure quality.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file of --out.")] = False,
) -> None:
    """Predict the rows of a file with a saved model, and print its quality if the file has labels."""
    from workbench.training.trained import ModelFolderError, load_model

    if out is not None and out.exists() and not force:
        raise ModelFolderError(f"{out} is there already.\nType --force to replace it.")
    made = load_model(model)
    predicted = made.apply(source, labels)
    if out is not None:
        write(out, predicted.values, predicted.probabilities, predicted.classes)
        typer.echo(f"{out}: {len(predicted.values):,} rows")
    else:
        for line in lines_of(predicted.values[:SHOWN], predicted.probabilities, predicted.classes):
            typer.echo(",".join(line))
        if len(predicted.values) > SHOWN:
            typer.echo(f"... {len(predicted.values):,} rows in all. Type --out scores.csv to write them.")
    if predicted.note:
        typer.echo(f"No quality: {predicted.note}.", err=True)
    else:
        typer.echo("quality: " + ", ".join(f"{name} {value:.4f}" for name, value in predicted.quality.items()))


def lines_of(values: Any, probabilities: Any, classes: tuple[str, ...]) -> list[list[str]]:
    """Return the rows of the CSV table as texts: a header, then row index, prediction, probability of each class.

    `values` is `[rows]` or `[rows, outputs]`, `probabilities` float `[rows, classes]` or None.
    """
    several = values.ndim == 2
    heads = [f"prediction_{place}" for place in range(values.shape[1])] if several else ["prediction"]
    lines = [["row", *heads, *(f"probability_{name}" for name in classes)]]
    for row, value in enumerate(values.tolist()):
        shown = [f"{one:.9g}" if isinstance(one, float) else str(one) for one in (value if several else [value])]
        chances = [] if probabilities is None else [f"{chance:.6g}" for chance in probabilities[row]]
        lines.append([str(row), *shown, *chances])
    return lines


def write(out: Path, values: Any, probabilities: Any, classes: tuple[str, ...]) -> None:
    """Write the table to a CSV file atomically, replacing an existing file; arguments as of `lines_of`."""
    new = out.with_name(f".{out.name}.new")
    try:
        with new.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(lines_of(values, probabilities, classes))
        os.replace(new, out)
    finally:
        new.unlink(missing_ok=True)


app = typer.Typer(
    cls=exit_codes.Commands,
    help="Would sparse tensors reduce my training time and memory: in which format, on which device, from which "
    "density on?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(bench, name="bench", no_args_is_help=True)
app.add_typer(data_commands.data, name="data", no_args_is_help=True)
app.command("profile")(data_commands.profile)
Root = Annotated[Path, typer.Option(help="Folder that runs are looked for in.")]
Folder = Annotated[Path, typer.Option(help="Folder for the runs.")]


@app.callback(invoke_without_command=True)
def about(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    """Would sparse tensors reduce my training time and memory: in which format, on which device, from which density?"""
    if version:
        import workbench

        typer.echo(f"sparse-workbench {workbench.__version__}")
        raise typer.Exit


@app.command()
def demo(
    root: Folder = Path("runs/demo"),
    quick: Annotated[bool, typer.Option("--quick", help="Three densities, no training: a minute.")] = False,
) -> None:
    """Train sparse and dense on real data, sweep density and format, print the verdict and the report's path."""
    from workbench.command import demo, terminal

    rows = []
    if not quick:
        rows = demo.train_both(root, terminal.follow)
        terminal.console.print(terminal.trained_table(rows))
    rows = rows + demo.sweep_density(root, terminal.follow, quick)
    terminal.conclude(demo.conclude(rows, root, quick))


@app.command()
@data_commands.with_files
def advise(
    ctx: typer.Context,
    source: data_commands.Named,
    model: Annotated[str, typer.Option(help="What is trained, by default what suits the labels.")] = "",
    budget: Annotated[float, typer.Option(help="Seconds that it may take, 5 or more.")] = 60.0,
    seconds: Annotated[float | None, typer.Option(hidden=True, help="The former name of --budget.")] = None,
    optimizer: Annotated[str, typer.Option(help="Rule by which a gradient changes the weights.")] = "adagrad",
    batch_rows: Annotated[
        int | None, typer.Option(min=1, help="Rows of a batch; by default 256, and a larger one is tried.")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda alone; by default all there are.")] = "",
    framework: Annotated[
        str,
        typer.Option(
            "--for",
            help="pytorch, tensorflow, keras or sklearn: which way to train inside that framework; then 120 seconds.",
        ),
    ] = "",
    lazy: Annotated[
        bool, typer.Option("--lazy", help="An update may be recommended that trains another model than dense.")
    ] = False,
    run: Annotated[
        Path | None,
        typer.Option(
            help="Run folder, by default runs/advise-DATA-MODEL, with a hash of the file's path; resumed if it exists."
        ),
    ] = None,
    json: data_commands.Json = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Show the keys of the records that each sentence rests on.")
    ] = False,
    **files: str,
) -> None:
    """Say what to train your data with: sparse or dense, how, how much faster; measured here, within a minute."""
    from workbench.sweeps import run_folder

    is_usual = exit_codes.is_default(ctx, "budget")
    if seconds is not None:
        budget, is_usual = exit_codes.former_budget("--seconds", seconds, is_usual), False
    if framework:
        from workbench.command import advising

        asked = None if is_usual else budget
        advising.show_framework(source, framework, files, asked, batch_rows, json)
        return
    with run_folder.supervisor_in_waiting():  # before what takes long is imported
        from workbench.command import advising

        given = {"model": model, "optimizer": optimizer, "batch_rows": batch_rows, "device": device}
        answer = advising.advise(source, files, given, budget, lazy, run, json, verbose)
    if answer.is_stopped:
        exit_codes.exit_interrupted(ctx, "Stopped")
    if answer.recommendation.verdict == "none":
        raise typer.Exit(exit_codes.WRONG_INPUT)


Runs = Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders, or .jsonl files of records.")]
Chart = Annotated[
    Path | None, typer.Option(help="A chart of measured against predicted, .svg or .png, or its numbers, .csv.")
]


@app.command()
def forecast(runs: Runs, out: Chart = None) -> None:
    """Fit a cost model on records: how well it predicts, how break-evens move with width, batch, features and skew."""
    from workbench.command import predicting

    predicting.predict(runs, out)


@app.command("predict", hidden=True)
def predict(runs: Runs, out: Chart = None) -> None:
    """Print a note that this command is called `forecast` now, and run it."""
    text = f"'workbench predict' is called 'workbench forecast' now; the old name ends with version {END}."
    typer.echo(f"Note: {text}", err=True)
    forecast(runs, out)


PLACES = "Measure on machines: local:N, ssh:HOST,HOST:PORT, slurm, slurm:N, tls://HOST:PORT of a Dask scheduler."

MOST_OF_SPEC = 1 << 20
"""Bytes that a spec in JSON has at most."""
PARTS_OF_SPEC = {"axes", "candidates", "contenders", "measure", "limits"}


def _is_data(path: Path) -> bool:
    """Return whether a path is data rather than a spec, which is TOML, JSON with parts of a spec, or a run folder.

    False for a path that does not exist.
    """
    if path.suffix == ".toml" or not path.exists() or (path / "spec.json").exists():
        return False
    if path.suffix != ".json" or path.is_dir() or path.stat().st_size > MOST_OF_SPEC:
        return True
    text = path.read_text(encoding="utf-8", errors="replace")
    for part in (text, text.lstrip().partition("\n")[0]):  # JSON, or a record a line
        try:
            parsed = json_format.loads(part)
        except (ValueError, RecursionError):
            continue
        return isinstance(parsed, list) or (isinstance(parsed, dict) and bool(parsed) and not _is_spec(parsed.keys()))
    return False


def _is_spec(keys: Collection[str]) -> bool:
    """Return whether the keys of a JSON object are those of a spec."""
    return bool(PARTS_OF_SPEC & {*keys}) or {*keys} <= {"name", "description", "seed"}


@app.command()
@with_choices
def sweep(
    ctx: typer.Context,
    spec: Annotated[
        Path | None,
        typer.Argument(
            help="Your data, as --path; or a spec: a TOML file, or the spec.json of a run (examples: workbench/specs)."
        ),
    ] = None,
    run: Annotated[Path | None, typer.Option(help="Run folder, by default runs/NAME; resumed if it exists.")] = None,
    detach: Annotated[bool, typer.Option("--detach", help="Start it and return at once.")] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Say what it would measure, how long and in how much memory; start nothing."),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Start it unasked, also above an hour or 1,000 configurations; for scripts.")
    ] = False,
    cluster: Annotated[str | None, typer.Option(help=PLACES)] = None,
    budget: Annotated[
        float | None, typer.Option(min=1, help="Seconds that the sweep may take, instead of the spec's.")
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print the answer of each density as JSON at the end, all else to stderr.")
    ] = False,
    label: Annotated[
        str,
        typer.Option(
            help="Column or variable of labels; by default a guess, which is printed.", rich_help_panel=CHOSEN
        ),
    ] = "",
    **choices: str | None,
) -> None:
    """Run the sweep that a spec describes or that you choose, or its rest; stop with Ctrl-C and lose nothing."""
    from workbench.command import sweeping, terminal
    from workbench.sweeps import agent_commands, estimate, run_folder

    if json and (detach or dry_run):
        raise typer.BadParameter("--json prints what was measured; leave out --detach and --dry-run.")
    if spec is not None and _is_data(spec) and not choices.get("path"):
        spec, choices["path"] = None, str(spec)
    choices = with_label_and_seconds(choices, label)
    with terminal.messages_on_stderr(json):
        settings, size = sweeping.load_sweep(spec, choices, budget)
        folder = run or run_folder.ROOT / settings.name
        agents = [] if cluster is None else agent_commands.list_agents(cluster)
        if dry_run:
            sweeping.dry_run(settings, size, folder, agents, exit_codes.original_command_line(ctx))
            return
        if not yes:
            sweeping.confirm_large_sweep(settings, size, estimate.seconds_of(size, settings))
        sweeping.start(settings, size, folder, cluster)
        if detach:
            return
        terminal.follow(settings.name, folder)
        state = sweeping.conclude(folder)
    if json:
        _print_answers([folder])
    _exit_unless_finished(ctx, state.state)


def _exit_unless_finished(ctx: typer.Context, state: str) -> None:
    """Exit with status 130 if the sweep's state is "stopped", with 1 unless it is "finished"."""
    if state == "stopped":
        exit_codes.exit_interrupted(ctx, "Stopped")
    if state != "finished":
        raise typer.Exit(exit_codes.FAILURE)


@app.command()
def status(
    run: Annotated[str | None, typer.Argument(help="A run folder, or the name of a run; by default all.")] = None,
    root: Root = Path("runs"),
) -> None:
    """List all sweeps: state, trials done, time left, process and folder; also those whose process died."""
    from workbench.command import console, running

    runs = running.find(root) if run is None else [running.choose(run, root)]
    if not runs:
        typer.echo(f"There is no run under {root}, and no sweep running elsewhere.")
        return
    console.console.print(running.table(runs))
    for one in runs:
        if run is not None or one.progress.message:
            console.print_run_lines(one.folder, running.lines(one))


@app.command()
def stop(
    run: Annotated[
        str | None, typer.Argument(help="A run folder, or the name of a run; by default the running one.")
    ] = None,
    all_runs: Annotated[bool, typer.Option("--all", help="Every running sweep.")] = False,
    root: Root = Path("runs"),
) -> None:
    """Stop a running sweep: its trial ends within a second, finished records are kept, and it can be resumed."""
    from workbench.command import running

    for one in running.to_stop(run, all_runs, root):
        state = running.stop(one)
        typer.echo(f"{one.folder}: {state.state}, {state.done} of {state.total} trials done.")


@app.command()
def report(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Run folders or .jsonl files of records, for one report.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="File to write, by default report.html next to the records: .html, .md, .pdf (printed by a Chromium "
            "of this machine), or the records alone as .csv or .parquet."
        ),
    ] = None,
    markdown: Markdown = False,
    results: Annotated[
        Path | None,
        typer.Option(help="Put records, report and charts of each run into this folder, such as results/MACHINE."),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print the answer of each density as JSON for programs; write nothing.")
    ] = False,
) -> None:
    """Write the report of runs: headline, verdict table, charts, sentences, tables, all records and their samples."""
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
    for path in written or [export.write_report(runs, out, markdown=markdown)]:
        typer.echo(path)


def _print_answers(runs: list[Path]) -> None:
    """Print the answer of each density of the runs as JSON to standard output."""
    from workbench.reports import export
    from workbench.reports.export import answers

    typer.echo(json_format.dumps(answers(export.frame_of(runs)), indent=1, allow_nan=False))


@app.command()
def compare(
    before: Annotated[
        str, typer.Argument(help="A run folder, a .jsonl file of records, or REVISION:FILE, a file at a git commit.")
    ],
    after: Annotated[str | None, typer.Argument(help="The same, of a later run; without it, see --with.")] = None,
    with_files: Annotated[
        list[Path] | None,
        typer.Option(
            "--with",
            metavar="FILE.jsonl",
            help="Records of another tool or person to compare with the first run: who, seconds (a list, one number a "
            "run), and the settings they are for, such as density; an unknown column lists all.",
        ),
    ] = None,
    within: Annotated[float, typer.Option(min=1.001, help="The factor up to which two times are the same.")] = 1.1,
    out: Annotated[Path | None, typer.Option(help="Markdown file to write as well, for a pull request.")] = None,
) -> None:
    """Say which configurations and kernels are slower, faster, the same or ambiguous in a second run, drift taken out.

    Exit status, for CI: 0 if nothing is significantly worse (ambiguous is not), 1 if a configuration or kernel is
    significantly slower, takes significantly more memory, or no longer has a result, 2 for wrong input.
    """
    from workbench.command import comparing

    comparing.run(before, after, with_files or (), within, out)


HOW = (
    *("optimizer", "learning_rate", "decay", "epochs", "batch_rows", "shuffle", "ahead", "device", "format", "engine"),
    *("gradient", "update", "hold", "launch", "serial"),
)
"""Options of how to train: if one is given, it is done so, and nothing is searched."""


@app.command()
@with_settings
def train(
    ctx: typer.Context,
    source: Annotated[
        str,
        typer.Argument(metavar="SOURCE", help="Your file or folder, or the name of a data set.", show_default=False),
    ] = "",
    label: data_commands.Label = "",
    save: Annotated[
        Path | None,
        typer.Option(help="Folder to keep the trained model in, for 'workbench apply'.", show_default=False),
    ] = None,
    search: Annotated[
        int | None,
        typer.Option(
            help="Settings to choose --decay from, on held-out rows of those trained on, by dual ascent; 0: none. "
            "By default 8, if no option of how to train is given.",
            show_default=False,
        ),
    ] = None,
    held_out: Annotated[
        float, typer.Option(min=0, max=0.9, help="Share of the rows held out to measure quality; 0 trains on all.")
    ] = 0.2,
    force: Annotated[bool, typer.Option("--force", help="Replace the model in the folder of --save.")] = False,
    cluster: Annotated[
        str | None,
        typer.Option(help="Train on several processes: local:N, ssh:HOST,HOST, slurm:N, or a scheduler's address."),
    ] = None,
    checkpoints: Annotated[
        Path, typer.Option(help="Folder of checkpoints and logs of several trainers; resumed if it has some.")
    ] = Path("runs/train"),
    address: Annotated[
        str,
        typer.Option(help="Address or interface of this machine that the others reach; by default guessed."),
    ] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say how the processes of --cluster are started; start nothing.")
    ] = False,
    **options: Any,
) -> None:
    """Train one configuration and show its loss live, then seconds an epoch, phases, memory and held-out quality."""
    from workbench.command import data_source, training

    settings = {name: value for name, value in options.items() if value is not None}
    if cluster is None and settings["trainers"] == 1:
        search = _settings_to_search(ctx, search)
    settings = data_source.with_source(settings, source, label, exit_codes.is_default(ctx, "dataset"))
    if exit_codes.is_default(ctx, "model"):
        settings = data_source.with_model(settings)
    trainers = settings.pop("trainers")
    if cluster is None and trainers == 1:
        training.train(settings, save, force, search, held_out)
        return
    _refuse_of_several(ctx, search, save)
    where, count = training.where_of(cluster, trainers)
    if not training.train_on_several(settings, where, count, checkpoints, dry_run, address):
        exit_codes.exit_interrupted(ctx, "Stopped")


def _refuse_of_several(ctx: typer.Context, search: int | None, save: Path | None) -> None:
    """Raise BadParameter for an option of `train` that is given and needs a single trainer."""
    if search:
        raise typer.BadParameter("several trainers search no settings. Leave --search out.", param_hint="--search")
    if not exit_codes.is_default(ctx, "held_out"):
        raise typer.BadParameter("several trainers hold out a fifth. Leave --held-out out.", param_hint="--held-out")
    if save is not None:
        raise typer.BadParameter("a model of several trainers is not saved yet. Leave --save out.", param_hint="--save")


def _settings_to_search(ctx: typer.Context, search: int | None) -> int | None:
    """Return how many settings to search, 0 for none, None to decide by the data.

    BadParameter for a count of 1, and for a search together with an option that it chooses.
    """
    given = next((name.replace("_", "-") for name in HOW if not exit_codes.is_default(ctx, name)), "")
    if search is None and given:
        typer.echo(f"Nothing is searched, as --{given} is given.", err=True)
        return 0
    if search and search < 2:
        raise typer.BadParameter(f"{search}; expected 2 settings or more, or 0 for none.", param_hint="--search")
    if search and given:
        text = f"it chooses how to train, and --{given} is given, too. Leave one of the two out."
        raise typer.BadParameter(text, param_hint="--search")
    return search


app.command()(apply)


@app.command()
def lab(
    notebooks: Annotated[
        Path | None, typer.Argument(help="Folder to open; by default the project's notebooks.")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="By default 8888, or the next that is free.")
    ] = None,
    ip: Annotated[
        str | None, typer.Option(help="Address to listen at; 0.0.0.0 for a container's published port.")
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Open no browser; implied in a container.")] = False,
    allow_root: Annotated[bool, typer.Option("--allow-root", help="Run as root; implied for root.")] = False,
) -> None:
    """Open JupyterLab on the notebooks."""
    from workbench.command import jupyter

    jupyter.start(notebooks, jupyter.options_of(port, no_browser, allow_root, ip))


@app.command()
@data_commands.with_files
def check(
    source: data_commands.Named,
    framework: Annotated[
        str, typer.Option("--for", help="Framework that will read the data: tensorflow, keras, pytorch or sklearn.")
    ],
    width: Annotated[int, typer.Option(min=0, help="Columns that the model has; 0: those of the data.")] = 0,
    like: Annotated[
        str,
        typer.Option(help="File that the model was trained on, with its columns and its codes of categories."),
    ] = "",
    json: data_commands.Json = False,
    **files: str,
) -> None:
    """Check data for a framework: one line per problem; exit status 1 on errors."""
    from workbench.command import data_checks

    data_checks.show(data_checks.check_source(source, framework, width, like, **files), json)


@app.command()
def doctor() -> None:
    """Say what this machine has (cores, memory, BLAS, threads, GPU or why none) and what to fix before measuring."""
    from workbench.command import console, doctor

    console.console.print(doctor.findings_table(doctor.examine()))


@app.command()
def warm(
    cases: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CASE", help="adagrad-steps, adam-epochs and so on; a wrong name lists all. By default all."
        ),
    ] = None,
) -> None:
    """Compile the code of common trainings now, which else the first training of each kind waits for."""
    from workbench.command import warming

    seconds = warming.warm(cases or [])
    typer.echo(f"The code is in the cache. It took {seconds:.1f} s; the next time it is loaded.")


options.add_help_texts(app)


def main() -> None:
    """Run the command line and exit with its status: user errors print one message, defects a traceback."""
    exit_codes.run(app)


if __name__ == "__main__":
    main()
