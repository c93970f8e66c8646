"""The command `sweep`: a spec, or choices in its place. Imports wait until it runs."""

from pathlib import Path
from typing import Annotated

import typer

from workbench.command import exit_codes, report_options
from workbench.command.options import CHOSEN, with_choices

PLACES = "Measure on machines: local:N, ssh:HOST,HOST:PORT, slurm, slurm:N, tls://HOST:PORT of a Dask scheduler."

SPECS = (".toml", ".json")
"""Ends of names of files that hold a spec; other files are data."""


@with_choices
def sweep(
    ctx: typer.Context,
    spec: Annotated[
        Path | None,
        typer.Argument(
            help="A TOML file, the spec.json of a run (workbench/specs has examples), or your data as --path."
        ),
    ] = None,
    run: Annotated[Path | None, typer.Option(help="Run folder, by default runs/NAME; resumed if it has rows.")] = None,
    detach: Annotated[bool, typer.Option("--detach", help="Start it and return at once.")] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Say what it would measure, how long and in how much memory; start nothing."),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Start it unasked, also above an hour or 1,000 cells; for scripts.")
    ] = False,
    cluster: Annotated[str | None, typer.Option(help=PLACES)] = None,
    budget: Annotated[
        float | None, typer.Option(min=1, help="Seconds that the sweep may take, instead of the spec's.")
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print the answer of each density as JSON at the end, all else to stderr.")
    ] = False,
    label: Annotated[
        str, typer.Option(help="Column or variable of labels; by default guessed, and told.", rich_help_panel=CHOSEN)
    ] = "",
    **choices: str | None,
) -> None:
    """Run the sweep that a spec describes or that you choose, or its rest; stop with Ctrl-C and lose nothing."""
    from workbench.command import sweeping, terminal
    from workbench.data.contract import with_label
    from workbench.sweeps import agent_commands, estimate, run_folder

    if json and (detach or dry_run):
        raise typer.BadParameter("--json prints what was measured; leave out --detach and --dry-run.")
    if spec is not None and spec.is_file() and spec.suffix not in SPECS and not choices.get("path"):
        spec, choices["path"] = None, str(spec)
    if label:
        choices["reading"] = with_label(choices.get("reading") or "", label)
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
        report_options.print_answers([folder])
    if state.state == "stopped":
        exit_codes.exit_interrupted(ctx, "Stopped")
    if state.state != "finished":
        raise typer.Exit(exit_codes.FAILURE)
