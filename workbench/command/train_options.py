"""The command `train`: the settings of a configuration, and where several trainers share it.

Imports wait until it runs.
"""

from pathlib import Path
from typing import Annotated, Any

import typer

from workbench.command import data_commands, exit_codes
from workbench.command.options import with_settings


@with_settings
def train(
    ctx: typer.Context,
    source: Annotated[
        str,
        typer.Argument(metavar="[SOURCE]", help="Your file or folder, or the name of a data set.", show_default=False),
    ] = "",
    label: data_commands.Label = "",
    save: Annotated[
        Path | None,
        typer.Option(help="Folder to keep the trained model in, for 'workbench apply'.", show_default=False),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the model in the folder of --save.")] = False,
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
    """Train one configuration and show its loss live, then seconds an epoch, phases, memory and held-out quality.

    Example: workbench train train.txt --save model/
    """
    from workbench.command import data_source

    settings = {name: value for name, value in options.items() if value is not None}
    settings = data_source.with_source(settings, source, label, exit_codes.is_default(ctx, "dataset"))
    if exit_codes.is_default(ctx, "model"):
        settings = data_source.with_model(settings)
    trainers = settings.pop("trainers")
    if cluster is None and trainers == 1:
        from workbench.command import training

        training.train(settings, save, force)
        return
    if save is not None:
        raise typer.BadParameter("a model of several trainers is not saved yet. Leave --save out.", param_hint="--save")
    from workbench.command import cluster_training

    where, count = cluster_training.where_of(cluster, trainers)
    if not cluster_training.train(settings, where, count, checkpoints, dry_run, address):
        exit_codes.exit_interrupted(ctx, "Stopped")
