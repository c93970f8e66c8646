"""The command line: one sub-command per public function, nothing else. Imports wait until a command needs them."""

from pathlib import Path
from typing import Annotated, Any

import typer

from workbench.command.options import with_settings

app = typer.Typer(
    help="Would sparse tensors reduce my training time and memory: in which format, on which device, from which "
    "density on?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
Folder = Annotated[Path, typer.Option(help="Folder for the runs.")]
bench = typer.Typer(help="Measure the kernels, or whole training steps, against SciPy, PyTorch, TensorFlow and BLAS.")
app.add_typer(bench, name="bench", no_args_is_help=True)
Out = Annotated[Path | None, typer.Option(help="File to write, by default report.html, or report.md, beside the rows.")]
Markdown = Annotated[bool, typer.Option("--markdown", help="Markdown instead of HTML, as for an --out *.md.")]
Quick = Annotated[bool, typer.Option("--quick", help="A selection that takes about two minutes.")]
Rows = Annotated[
    Path | None, typer.Option(help="Run folder, by default runs/bench-SUITE[-DEVICE]; resumed if it has rows.")
]
Only = Annotated[str, typer.Option(help="One task alone, such as csr_dense; a wrong name lists all.")]
OnShape = Annotated[str, typer.Option(help="One shape alone; a wrong name lists all.")]
Threads = Annotated[int | None, typer.Option(min=1, help="At most the cores of this machine; by default all.")]
OnDevice = Annotated[str, typer.Option("--device", help="cpu, or cuda: our GPU twins against rivals on the same GPU.")]


@app.command()
def demo(root: Folder = Path("runs/demo")) -> None:
    """Train sparse and dense on real data, sweep density and format, print the verdict and the report's path."""
    from workbench.command import demo, terminal

    trained = demo.train_both(root, terminal.follow)
    terminal.console.print(terminal.trained_table(trained))
    rows = trained + demo.sweep_density(root, terminal.follow)
    terminal.conclude(demo.conclude(rows, root))


@app.command()
def sweep(
    spec: Annotated[Path, typer.Argument(help="A TOML file, or the spec.json of a run; workbench/specs has examples.")],
    run: Annotated[Path | None, typer.Option(help="Run folder, by default runs/NAME; resumed if it has rows.")] = None,
    detach: Annotated[bool, typer.Option("--detach", help="Start it and return at once.")] = False,
) -> None:
    """Run the sweep that a spec describes, or the rest of it; stop with Ctrl-C and lose nothing."""
    from workbench.command import terminal
    from workbench.sweep import run_folder
    from workbench.sweep import spec as specs

    folder = run_folder.start(specs.load(spec), run)
    if detach:
        typer.echo(f"Started in {folder}. Stop it with: touch {folder / 'stop'}")
        return
    terminal.follow(spec.stem, folder)
    if run_folder.read(folder).state == "failed":
        raise typer.Exit(1)
    typer.echo(f"Its report: workbench report {folder}")


@app.command()
def report(
    run: Annotated[Path, typer.Argument(help="A run folder, or a .jsonl file of rows.")],
    out: Out = None,
    markdown: Markdown = False,
) -> None:
    """Write the report of a run: verdict in words, charts, tables, the machine, the command that made it."""
    from workbench.reports import export

    typer.echo(export.write_report(run, out, markdown=markdown))


@app.command()
@with_settings
def train(**options: Any) -> None:
    """Train one configuration and show its loss live, then seconds an epoch, phases, memory and held-out quality."""
    from workbench.command import training

    training.train({name: value for name, value in options.items() if value is not None})


@app.command()
def lab(
    notebooks: Annotated[
        Path | None, typer.Argument(help="Folder to open; by default the project's notebooks.")
    ] = None,
) -> None:
    """Open JupyterLab on the notebooks."""
    from workbench.command import jupyter

    raise typer.Exit(jupyter.start(notebooks))


@app.command()
def doctor() -> None:
    """Say what this machine has (cores, memory, BLAS, threads, GPU or why none) and what to fix before measuring."""
    from workbench.command import doctor, terminal

    terminal.console.print(terminal.findings_table(doctor.examine()))


@bench.command("kernels")
def bench_kernels(
    quick: Quick = False,
    run: Rows = None,
    only: Only = "",
    shape: OnShape = "",
    threads: Threads = None,
    device: OnDevice = "cpu",
) -> None:
    """Time every kernel against its rivals on many shapes and widths; stop with Ctrl-C and lose nothing."""
    _bench("kernels", quick, run, only, shape, threads, device)


@bench.command("step")
def bench_step(
    quick: Quick = False, run: Rows = None, shape: OnShape = "", threads: Threads = None, device: OnDevice = "cpu"
) -> None:
    """Time whole training steps, on batches that repeat and on new ones; stop with Ctrl-C and lose nothing."""
    _bench("step", quick, run, "", shape, threads, device)


@bench.command("report")
def bench_report(
    run: Annotated[Path, typer.Argument(help="A run folder of the benchmark.")],
    out: Out = None,
    markdown: Markdown = False,
) -> None:
    """Write what was to be reached and what was, the charts, and every cell."""
    from workbench.reports import bench as reports

    typer.echo(reports.write(run, out, markdown=markdown))


def _bench(suite: str, quick: bool, run: Path | None, only: str, shape: str, threads: int | None, device: str) -> None:
    from workbench import store
    from workbench.analysis.goals import goals
    from workbench.bench import screen, suites
    from workbench.bench.rounds import Policy
    from workbench.bench.runner import Runner
    from workbench.reports import bench as reports

    folder = run or Path("runs") / f"bench-{suite}{'' if device == 'cpu' else f'-{device}'}"
    cells = suites.cells_of(suite, quick, only, shape, device)
    starts = () if only or shape or device != "cpu" else suites.starts_of(suite, quick)
    screen.run(Runner(folder, Policy(), threads), cells, starts)
    screen.console.print(screen.goals_table(goals(store.BENCH.frame(store.BENCH.read(folder)))))
    typer.echo(f"Report: {reports.write(folder)}")


def main() -> None:
    """Run the command line; errors a user can mend are one message and exit status 1, others a traceback."""
    try:
        app()
    except (ValueError, LookupError, OSError, RuntimeError, ImportError, MemoryError) as error:
        ours = type(error).__module__.split(".")[0] in ("workbench", "kernels")
        if ours or isinstance(error, OSError | ImportError | MemoryError):
            typer.secho(f"workbench: {error}", fg="red", err=True)
            raise SystemExit(1) from None
        raise


if __name__ == "__main__":
    main()
