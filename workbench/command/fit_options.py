"""The options of `bench fit`: the suite's own cases, or data of the user's by path. Imports wait until it runs."""

from pathlib import Path
from typing import Annotated

import typer

from workbench.command import data_commands, exit_codes

HeldOut = Annotated[
    str, typer.Option(help="Share of the rows held out, or the file of them, read as --data was; for --data.")
]
FirstSeconds = Annotated[
    float | None, typer.Option(min=0.01, help="Seconds of training of every setting; the best go on. By default 0.4.")
]


def bench_fit(
    ctx: typer.Context,
    data: Annotated[str, typer.Option(help="Your file or folder, or a data set; by default the suite's own.")] = "",
    model: Annotated[str, typer.Option(help="Model, for --data; by default guessed, and told.")] = "logistic",
    held_out: HeldOut = "0.2",
    dataset: data_commands.Dataset = "",
    label: data_commands.Label = "",
    labels: data_commands.Labels = "",
    columns: data_commands.Columns = "",
    kind: data_commands.Kind = "",
    reading: data_commands.Reading = "",
    positive: Annotated[str, typer.Option(help="Class that means yes, for --data.")] = "",
    width: Annotated[int | None, typer.Option(min=1, help="Outputs or factors; by default the model's.")] = None,
    model_options: Annotated[str, typer.Option(help="Options of the model, name=value with commas between.")] = "",
    case: Annotated[list[str] | None, typer.Option(help="A case of the suite; a wrong name lists all.")] = None,
    contender: Annotated[list[str] | None, typer.Option(help="A candidate alone; a wrong name lists all.")] = None,
    seconds: Annotated[float, typer.Option(min=0.1, help="Seconds of training after which a setting is left.")] = 20.0,
    first_seconds: FirstSeconds = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each best setting; from 4 on more where needed.")] = 4,
    threads: Annotated[int | None, typer.Option(min=1, help="At most the cores here; by default all.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Draws rows held out, starting weights and order; for --data.")] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="Two small cases of the suite.")] = False,
    results: Annotated[
        Path, typer.Option(help="Folder of rows, page and charts; what it has is not measured again.")
    ] = Path("runs/bench-fit"),
) -> None:
    """Train to the same held-out quality, sparse, dense and with other libraries; stop with Ctrl-C and lose nothing."""
    from workbench.bench.fit import cases
    from workbench.bench.fit.records import Policy
    from workbench.command import fit
    from workbench.data.contract import with_label

    chosen = cases.choose_cases(tuple(case or ()), quick)
    if data:
        given = {"labels": labels, "columns": columns, "kind": kind, "positive": positive}
        more = {"model": model, "model_options": model_options, "width": width, "seed": seed}
        settings = {name: value for name, value in (given | more).items() if value}
        if exit_codes.is_default(ctx, "model"):
            settings.pop("model")  # guessed from the labels, as train and advise do
        chosen = [fit.case_of(data, held_out, dataset, with_label(reading, label), **settings)]
    policy = Policy(seconds, rounds, threads, first_seconds)
    if not fit.run(chosen, tuple(contender or ()), results, policy, exit_codes.original_command_line(ctx)):
        exit_codes.exit_interrupted(ctx, "Stopped")
