"""The command `train`: the settings of a configuration, and where several trainers share it.

Imports wait until it runs.
"""

from pathlib import Path
from typing import Annotated, Any

import typer

from workbench.command import data_commands, exit_codes
from workbench.command.options import with_settings

HOW = (
    *("optimizer", "learning_rate", "decay", "epochs", "batch_rows", "shuffle", "ahead", "device", "format", "engine"),
    *("gradient", "update", "hold", "launch", "serial"),
)
"""Options of how to train: if one is given, it is done so, and nothing is searched."""


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
    search: Annotated[
        int | None,
        typer.Option(
            help="Settings to choose --decay from, on held-out rows of those trained on, by dual ascent; 0: none. "
            "By default 8, if no option of how to train is given.",
            show_default=False,
        ),
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
    """Train one configuration and show its loss live, then seconds an epoch, phases, memory and held-out quality."""
    from workbench.command import data_source

    settings = {name: value for name, value in options.items() if value is not None}
    if cluster is None and settings["trainers"] == 1:
        search = _settings_to_search(ctx, search)
    settings = data_source.with_source(settings, source, label, exit_codes.is_default(ctx, "dataset"))
    if exit_codes.is_default(ctx, "model"):
        settings = data_source.with_model(settings)
    trainers = settings.pop("trainers")
    if cluster is None and trainers == 1:
        from workbench.command import training

        training.train(settings, save, force, search)
        return
    if search:
        raise typer.BadParameter("several trainers search no settings. Leave --search out.", param_hint="--search")
    if save is not None:
        raise typer.BadParameter("a model of several trainers is not saved yet. Leave --save out.", param_hint="--save")
    from workbench.command import cluster_training

    where, count = cluster_training.where_of(cluster, trainers)
    if not cluster_training.train(settings, where, count, checkpoints, dry_run, address):
        exit_codes.exit_interrupted(ctx, "Stopped")


def _settings_to_search(ctx: typer.Context, search: int | None) -> int | None:
    """Return the count of settings to choose from, 0 for none, None if nothing says.

    `BadParameter` for a count below 2, and for a search and an option that it chooses.
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
