"""The command line: one sub-command per public function, nothing else. Imports wait until a command needs them."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Would sparse tensors reduce my training time and memory: in which format, from which density on, by how much?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
Folder = Annotated[Path, typer.Option(help="Folder for the runs.")]


@app.command()
def demo(root: Folder = Path("runs/demo")) -> None:
    """Train sparse and dense on real data, sweep density and format, print the verdict and the report's path."""
    from workbench import demo, terminal

    trained = demo.train_both(root, terminal.follow)
    terminal.console.print(terminal.trained_table(trained))
    rows = trained + demo.sweep_density(root, terminal.follow)
    advice, path = demo.conclude(rows, root)
    terminal.console.print("\n".join(advice.sentences), markup=False, highlight=False)
    terminal.console.print(f"\nReport: {path.resolve()}", markup=False, soft_wrap=True)


@app.command()
def sweep(
    spec: Annotated[Path, typer.Argument(help="A TOML file; workbench/specs has examples.")],
    run: Annotated[Path | None, typer.Option(help="Run folder; runs/NAME when not given. One with rows is resumed.")] = None,
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
    out: Annotated[Path | None, typer.Option(help="Where to write; report.html in the run folder when not given.")] = None,
    markdown: Annotated[bool, typer.Option(help="Markdown instead of HTML.")] = False,
) -> None:
    """Write the report of a run: verdict in words, charts, tables, the machine, the command that made it."""
    from workbench import cli_report

    typer.echo(cli_report.write(run, out, markdown=markdown))
