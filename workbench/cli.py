"""The command line: one sub-command per public function, nothing else. Imports wait until a command needs them."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Would sparse tensors reduce my training time and memory: in which format, from which density on?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
Folder = Annotated[Path, typer.Option(help="Folder for the runs.")]
bench = typer.Typer(help="Measure the kernels, or whole training steps, against SciPy, PyTorch, TensorFlow and BLAS.")
app.add_typer(bench, name="bench", no_args_is_help=True)
Quick = Annotated[bool, typer.Option(help="A selection that takes about two minutes.")]
Rows = Annotated[Path | None, typer.Option(help="Run folder, runs/bench-SUITE by default; resumed if it has rows.")]
Only = Annotated[str, typer.Option(help="One task alone.")]
OnShape = Annotated[str, typer.Option(help="One shape alone.")]
Threads = Annotated[int | None, typer.Option(min=1, help="All cores by default.")]
OnDevice = Annotated[str, typer.Option("--device", help="cpu, or cuda: our GPU twins against rivals on the same GPU.")]


@app.command()
def demo(root: Folder = Path("runs/demo")) -> None:
    """Train sparse and dense on real data, sweep density and format, print the verdict and the report's path."""
    from workbench import demo, terminal

    trained = demo.train_both(root, terminal.follow)
    terminal.console.print(terminal.trained_table(trained))
    rows = trained + demo.sweep_density(root, terminal.follow)
    terminal.conclude(demo.conclude(rows, root))


@app.command()
def sweep(
    spec: Annotated[Path, typer.Argument(help="A TOML file; workbench/specs has examples.")],
    run: Annotated[Path | None, typer.Option(help="Run folder, runs/NAME by default; resumed if it has rows.")] = None,
    detach: Annotated[bool, typer.Option(help="Start it and return at once.")] = False,
) -> None:
    """Run the sweep that a spec describes, or the rest of it; stop with Ctrl-C and lose nothing."""
    from workbench import terminal
    from workbench.sweep import progress
    from workbench.sweep import spec as specs

    folder = progress.start(specs.load(spec), run)
    if detach:
        typer.echo(f"Started in {folder}. Stop it with: touch {folder / 'stop'}")
        return
    terminal.follow(spec.stem, folder)
    if progress.read(folder).state == "failed":
        raise typer.Exit(1)


@app.command()
def report(
    run: Annotated[Path, typer.Argument(help="A run folder, or a .jsonl file of rows.")],
    out: Annotated[Path | None, typer.Option(help="Where to write; by default report.html in the run folder.")] = None,
    markdown: Annotated[bool, typer.Option(help="Markdown instead of HTML.")] = False,
) -> None:
    """Write the report of a run: verdict in words, charts, tables, the machine, the command that made it."""
    from workbench import export

    typer.echo(export.write_report(run, out, markdown=markdown))


@app.command()
def train(
    dataset: Annotated[str, typer.Option(help="stdlib, uniform, power_law, svmlight or npz.")] = "stdlib",
    model: Annotated[str, typer.Option(help="linear, logistic or softmax.")] = "softmax",
    format: Annotated[str, typer.Option(help="dense, csr, csc, coo or row_sparse.")] = "csr",
    engine: Annotated[str | None, typer.Option(help="ours, vendor or dense; by default what suits the format.")] = None,
    gradient: Annotated[
        str | None, typer.Option(help="dense, row_sparse or fused; by default what suits the format.")
    ] = None,
    update: Annotated[
        str | None, typer.Option(help="standard, lazy or exact; by default what suits the gradient.")
    ] = None,
    optimizer: Annotated[
        str, typer.Option(help="sgd, momentum, adagrad, adam, ftrl and others; a wrong name lists all.")
    ] = "adagrad",
    learning_rate: Annotated[float | None, typer.Option(help="By default the optimizer's own.")] = None,
    epochs: Annotated[int, typer.Option(min=1)] = 3,
    batch_rows: Annotated[int, typer.Option(min=1)] = 256,
    rows: Annotated[int | None, typer.Option(min=1, help="Rows drawn; all if not given.")] = None,
    features: Annotated[int | None, typer.Option(min=1, help="Most frequent columns kept; all if not given.")] = None,
    density: Annotated[float | None, typer.Option(help="nnz / size; the data's own if not given.")] = None,
    width: Annotated[int | None, typer.Option(min=1, help="Outputs; the data's own if not given.")] = None,
    path: Annotated[str | None, typer.Option(help="The file of svmlight or npz.")] = None,
    labels: Annotated[str | None, typer.Option(help="The labels (.npy) of npz.")] = None,
    device: Annotated[str, typer.Option(help="cpu, or cuda for a CUDA device.")] = "cpu",
    seed: int = 0,
) -> None:
    """Train one configuration and show its loss live, then seconds an epoch, phases, memory and held-out quality."""
    from workbench import live

    live.train({name: value for name, value in locals().items() if value is not None and name != "live"})


@app.command()
def lab(
    notebooks: Annotated[
        Path | None, typer.Argument(help="Folder to open; by default the project's notebooks.")
    ] = None,
) -> None:
    """Open JupyterLab on the notebooks."""
    from workbench import lab as labs

    raise typer.Exit(labs.start(notebooks))


@app.command()
def doctor() -> None:
    """Say what this machine has, cores, BLAS, threads, Numba layer, GPU or why none, memory, and what to fix."""
    from workbench import doctor, terminal

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
    out: Annotated[Path | None, typer.Option(help="Where to write; by default report.html in the run folder.")] = None,
    markdown: Annotated[bool, typer.Option(help="Markdown instead of HTML.")] = False,
) -> None:
    """Write what was to be reached and what was, the charts, and every cell."""
    from workbench import bench_report as reports

    typer.echo(reports.write(run, out, markdown=markdown))


def _bench(suite: str, quick: bool, run: Path | None, only: str, shape: str, threads: int | None, device: str) -> None:
    from workbench import bench_report as reports
    from workbench import store
    from workbench.analysis.goals import goals
    from workbench.bench import screen, suites
    from workbench.bench.rounds import Policy
    from workbench.bench.runner import Runner

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
    except (ValueError, LookupError, OSError, RuntimeError, ImportError) as error:
        if type(error).__module__.split(".")[0] in ("workbench", "kernels") or isinstance(error, OSError | ImportError):
            typer.secho(f"workbench: {error}", fg="red", err=True)
            raise SystemExit(1) from None
        raise


if __name__ == "__main__":
    main()
