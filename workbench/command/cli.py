"""The command line: one sub-command per public function, nothing else. Imports wait until a command needs them."""

from pathlib import Path
from typing import Annotated, Any

import typer

from workbench.command import advise_options, applying, data_commands, exit_codes, help_texts
from workbench.command.compare_options import compare
from workbench.command.end_options import bench_end
from workbench.command.fair_options import bench_fair
from workbench.command.fit_options import bench_fit
from workbench.command.prune_options import bench_prune
from workbench.command.report_options import Markdown, report
from workbench.command.sweep_options import sweep
from workbench.command.train_options import train

app = typer.Typer(
    cls=exit_codes.Commands,
    help="Would sparse tensors reduce my training time and memory: in which format, on which device, from which "
    "density on?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
Root = Annotated[Path, typer.Option(help="Folder that runs are looked for in.")]
Folder = Annotated[Path, typer.Option(help="Folder for the runs.")]
bench = typer.Typer(
    cls=exit_codes.Group,
    help="Measure the kernels, or whole training steps, against SciPy, PyTorch, TensorFlow and BLAS.",
)
app.add_typer(bench, name="bench", no_args_is_help=True)
app.add_typer(data_commands.data, name="data", no_args_is_help=True)
Out = Annotated[Path | None, typer.Option(help="File to write, by default report.html, or report.md, beside the rows.")]
Quick = Annotated[bool, typer.Option("--quick", help="A selection that takes about two minutes.")]
Rows = Annotated[
    Path | None, typer.Option(help="Run folder, by default runs/bench-SUITE[-DEVICE]; resumed if it has rows.")
]
Only = Annotated[str, typer.Option(help="One task alone, such as csr_dense; a wrong name lists all.")]
OnShape = Annotated[str, typer.Option(help="One shape alone; a wrong name lists all.")]
Threads = Annotated[int | None, typer.Option(min=1, help="At most the cores of this machine; by default all.")]
OnDevice = Annotated[
    str, typer.Option("--device", help="cpu, or cuda: our GPU twins against competitors on the same GPU.")
]


@app.callback(invoke_without_command=True)
def about(version: Annotated[bool, typer.Option("--version", help="Say the version, and end.")] = False) -> None:
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


app.command()(advise_options.advise)
app.command()(advise_options.forecast)
app.command("predict", hidden=True)(advise_options.predict)
app.command()(sweep)


@app.command()
def status(
    run: Annotated[str | None, typer.Argument(help="A run folder, or the name of a run; by default all.")] = None,
    root: Root = Path("runs"),
) -> None:
    """List all sweeps: state, trials done, time left, process and folder; sweeps whose process died are included."""
    from workbench.command import console, running

    runs = running.find(root) if run is None else [running.choose(run, root)]
    if not runs:
        typer.echo(f"There is no run under {root}, and no sweep at work elsewhere.")
        return
    console.console.print(running.table(runs))
    for one in runs:
        if run is not None or one.progress.message:
            console.print_run_lines(one.folder, running.lines(one))


@app.command()
def stop(
    run: Annotated[
        str | None, typer.Argument(help="A run folder, or the name of a run; by default the one at work.")
    ] = None,
    all_runs: Annotated[bool, typer.Option("--all", help="Every sweep that is at work.")] = False,
    root: Root = Path("runs"),
) -> None:
    """Stop a sweep that is at work; the trial at work ends within a second, finished rows stay, and it can go on."""
    from workbench.command import running

    for one in running.to_stop(run, all_runs, root):
        state = running.stop(one)
        typer.echo(f"{one.folder}: {state.state}, {state.done} of {state.total} trials done.")


app.command("report")(report)
app.command("compare")(compare)


app.command()(train)
app.command()(applying.apply)


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
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Open no browser; by itself in a container.")
    ] = False,
    allow_root: Annotated[bool, typer.Option("--allow-root", help="Run as root; by itself for root.")] = False,
) -> None:
    """Open JupyterLab on the notebooks."""
    from workbench.command import jupyter

    jupyter.start(notebooks, jupyter.options_of(port, no_browser, allow_root, ip))


@app.command()
def check(
    source: data_commands.Named,
    framework: Annotated[
        str, typer.Option("--for", help="tensorflow, keras, pytorch or sklearn: what the data shall be handed to.")
    ],
    dataset: data_commands.Dataset = "",
    labels: data_commands.Labels = "",
    columns: data_commands.Columns = "",
    kind: data_commands.Kind = "",
    label: data_commands.Label = "",
    reading: data_commands.Reading = "",
    width: Annotated[int, typer.Option(min=0, help="Columns that the model has; 0: those of the data.")] = 0,
    like: Annotated[
        str,
        typer.Option(help="File that the model was trained on, with its columns and its codes of categories."),
    ] = "",
    json: data_commands.Json = False,
) -> None:
    """Say what a framework would stumble over, or take without a word: a line a violation; status 1 after an error."""
    from workbench.command import data_checks
    from workbench.data.contract import with_label

    reading = with_label(reading, label)
    options = {"dataset": dataset, "labels": labels, "columns": columns, "kind": kind, "reading": reading}
    data_checks.show(data_checks.check_source(source, framework, width, like, **options), json)


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
            metavar="[CASE]", help="adagrad-steps, adam-epochs and so on; a wrong name lists all. By default all."
        ),
    ] = None,
) -> None:
    """Compile the code of common trainings now, which else the first training of each kind waits for."""
    from workbench.command import warming

    seconds = warming.warm(cases or [])
    typer.echo(f"The code is in the cache. It took {seconds:.1f} s; the next time it is loaded.")


@bench.command("kernels")
def bench_kernels(
    ctx: typer.Context,
    quick: Quick = False,
    run: Rows = None,
    only: Only = "",
    shape: OnShape = "",
    threads: Threads = None,
    device: OnDevice = "cpu",
) -> None:
    """Time every kernel against its competitors on many shapes and widths; stop with Ctrl-C and lose nothing."""
    _bench(ctx, "kernels", quick, run, only, shape, threads, device)


@bench.command("step")
def bench_step(
    ctx: typer.Context,
    quick: Quick = False,
    run: Rows = None,
    shape: OnShape = "",
    threads: Threads = None,
    device: OnDevice = "cpu",
) -> None:
    """Time whole training steps, on batches that repeat and on new ones; stop with Ctrl-C and lose nothing."""
    _bench(ctx, "step", quick, run, "", shape, threads, device)


@bench.command("pytorch")
def bench_pytorch(
    ctx: typer.Context,
    quick: Quick = False,
    run: Rows = None,
    shape: OnShape = "",
    threads: Threads = None,
) -> None:
    """Time loops of PyTorch on sparse rows as they are, and with the layer and the optimizer of ours."""
    _bench(ctx, "pytorch", quick, run, "", shape, threads, "cpu")


@bench.command("report")
def bench_report(
    run: Annotated[Path, typer.Argument(help="A run folder of the benchmark, or a file of rows.")],
    out: Out = None,
    markdown: Markdown = False,
) -> None:
    """Write what was to be reached and what was, the charts, and every configuration."""
    from workbench.reports import bench as reports

    typer.echo(reports.write(run, out, markdown=markdown))


@bench.command("self")
def bench_self(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PART]",
            help="record (noise of this machine), constants, coverage, calibration and power (simulations with it), "
            "slow (one kernel made slower), threshold (loads beside trials), threads (all threads against one), "
            "busy (the same beside a busy core), turns (fresh processes against processes in turns), duets (turns "
            "against two at once), panel (trials that a panel shows against trials alone), answers (advice on files), "
            "demo (its sweep again and again), same (candidates against themselves); by default all.",
        ),
    ] = None,
    results: Annotated[
        Path, typer.Option(help="Folder of rows and page; more of both is added to what is there.")
    ] = Path("runs/bench-self"),
    seconds_budget: Annotated[
        float,
        typer.Option(
            "--budget",
            "--seconds-budget",
            min=0,
            help="Seconds for the parts that measure; each ends what it has begun.",
        ),
    ] = 3600.0,
) -> None:
    """Try the measuring where the answer is known: equals, simulated ratios, a slower kernel; on a quiet machine."""
    from workbench.command import self_trial

    self_trial.run(names or [], results, seconds_budget)


@bench.command("cluster")
def bench_cluster(
    ctx: typer.Context,
    quick: Quick = False,
    results: Annotated[
        Path, typer.Option(help="Folder of rows, page and chart; what it has is not measured again.")
    ] = Path("runs/bench-cluster"),
    runs: Annotated[Path, typer.Option(help="Folder of logs, and of generated rows.")] = Path("runs/bench-cluster"),
    streamed: Annotated[
        int | None,
        typer.Option(
            min=1000,
            help="Instead train so many generated rows that stay on disk, in 2 processes that may have half of them in "
            "memory: from some 8 million on that is more than a process without rows has.",
        ),
    ] = None,
) -> None:
    """Count the bytes of a step on large tables, time it with 1, 2 and 4 processes, predict it for 256 machines."""
    from workbench.command import bench_cluster

    bench_cluster.run(results, runs, quick, streamed, exit_codes.original_command_line(ctx))


bench.command("advise")(advise_options.bench_advise)
bench.command("fit")(bench_fit)
bench.command("fair")(bench_fair)
bench.command("end")(bench_end)
bench.command("prune")(bench_prune)


def _bench(ctx: typer.Context, suite: str, *options: Any) -> None:
    """Run a benchmark suite; imports wait until here."""
    from workbench.command import benching

    benching.run(ctx, suite, *options)


help_texts.add_help_texts(app)


def main() -> None:
    """Run the command line; user errors print one message, defects a traceback."""
    exit_codes.run(app)


if __name__ == "__main__":
    main()
