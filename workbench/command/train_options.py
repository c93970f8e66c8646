"""The command `train`: the settings of a cell, and where several trainers share it. Imports wait until it runs."""

from pathlib import Path
from typing import Annotated, Any

import typer

from workbench.command import exits
from workbench.command.options import with_settings


@with_settings
def train(
    ctx: typer.Context,
    cluster: Annotated[
        str | None,
        typer.Option(help="Train on several processes: local:N, ssh:HOST,HOST, slurm:N, or a scheduler's address."),
    ] = None,
    checkpoints: Annotated[
        Path, typer.Option(help="Folder of checkpoints and logs of several trainers, which goes on from what is there.")
    ] = Path("runs/train"),
    address: Annotated[
        str,
        typer.Option(help="Address or interface here at which other machines reach this one; else one on the way."),
    ] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say how the processes of --cluster are started; start nothing.")
    ] = False,
    **options: Any,
) -> None:
    """Train one configuration and show its loss live, then seconds an epoch, phases, memory and held-out quality."""
    from workbench.command import data_source

    settings = {name: value for name, value in options.items() if value is not None}
    if exits.is_default(ctx, "dataset"):
        settings = data_source.with_reader(settings)
    trainers = settings.pop("trainers")
    if cluster is None and trainers == 1:
        from workbench.command import training

        training.train(settings)
        return
    from workbench.command import cluster_training

    where, count = cluster_training.where_of(cluster, trainers)
    if not cluster_training.train(settings, where, count, checkpoints, dry_run, address):
        exits.interrupted(ctx, "Stopped")
