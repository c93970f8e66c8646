"""Recommenders on the command line: `advise` and `train` with `--model als`, and `apply` of the folder it saved."""

import json
import shlex
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from kernels.registry import format_count
from workbench import atomic_files
from workbench.command.exit_codes import is_default
from workbench.command.output import echo, escape_line
from workbench.recommend.interactions import Interactions
from workbench.recommend.recommender import Recommender

NAMES = {"width": "factors", "epochs": "iterations", "seed": "random_state"}
"""Options of the command, and the parameters of `Recommender` that they are."""
SHOWN = 10
"""Lines that are shown if no file is written."""


TAKEN = (*NAMES, "source", "path", "model", "save", "force")
"""Options of `train` that are taken with --model als and ease."""


def refuse_others(ctx: typer.Context) -> None:
    """Raise BadParameter for an option of `train` that is given and that a recommender does not take."""
    for name in ctx.params:
        if name not in TAKEN and not is_default(ctx, name):
            option = f"--{name.replace('_', '-')}"
            able = ", ".join(f"--{one}" for one in NAMES)
            text = f"--model {ctx.params['model']} takes users, items, counts and times by their names, and {able}."
            raise typer.BadParameter(f"{text} Leave {option} out.", param_hint=option)


def advise(source: str, as_json: bool) -> None:
    """Train als and ease on most of what is in the file `source`; print time, memory and recall, as JSON if asked for.

    DataError if the file cannot be used.
    """
    from workbench.recommend import comparing  # loads psutil, which `apply` does without

    made = Recommender("als", random_state=0)
    found = _read(made, source)
    answer = comparing.compare(found, random_state=0)
    if as_json:
        sizes = {"items": answer.items, "items_most": answer.items_most, "items_equal": answer.items_equal}
        echo(
            json.dumps(
                {"best": answer.best, "is_personal": answer.is_personal, **sizes, "models": list(answer.records)},
                indent=1,
            )
        )
        return
    echo(answer.sentences)
    echo(f"Train it with: workbench train {shlex.quote(source)} --model {answer.best} --save model/")


def _read(made: Recommender, source: str) -> Interactions:
    """Return what a recommender reads in a file, and print which columns it took for what to standard error."""
    found = made.read(source)
    if named := [f"{role} {name!r}" for role, name in found.columns.items()]:
        echo(f"Columns: {', '.join(named)}{'' if 'value' in found.columns else '; each row counts 1'}.", err=True)
    return found


def train(source: str, model: str, options: Mapping[str, Any], save: Path | None, force: bool) -> None:
    """Fit a recommender to the file `source`, print what it took, and keep it in the folder `save` unless None.

    `options` are those of the command that were given, by their names. DataError if the file cannot be used.
    """
    made = Recommender(model, verbose=True, **{NAMES[name]: options[name] for name in NAMES if name in options})
    found = _read(made, source)
    start = time.perf_counter()
    made.fit(found)
    users, items = made.seen_.shape
    echo(
        f"{model}: {format_count(users, 'user')}, {format_count(items, 'item')}, "
        f"{format_count(made.seen_.nnz, 'entry')}; {format_count(made.n_iter_, 'iteration')} in "
        f"{time.perf_counter() - start:.3g} s, regularization {made.chosen_.regularization:.3g}"
        + (f", confidence {made.chosen_.confidence}" if model == "als" else "")
    )
    if save is None:
        echo(
            f"To keep it: --save model/. How well it recommends: workbench advise {shlex.quote(source)} --model {model}"
        )
    else:
        made.save(save, force)
        echo(f"The model is kept in {save}. To recommend: workbench apply {save} FILE --out lists.csv")


def apply(made: Recommender, source: Path, out: Path | None, force: bool) -> None:
    """Write or print 20 items for each user in a file of what they took, new users or known ones, and not these items.

    `out` is a CSV file: user, item, title if the items have any, score; an existing one is replaced if `force`.
    """
    found = made.read(source)
    users = list(range(found.matrix.shape[0])) if found.users is None else found.users
    frame = made.recommend(found, n=20).to_frame(users)
    if out is not None:
        with atomic_files.replacing(out, force=force) as new:
            frame.to_csv(new, index=False)
        echo(f"{out}: {format_count(len(frame), 'row')}")
        return
    for line in frame.head(SHOWN).to_csv(index=False).splitlines():
        echo(escape_line(line))
    if len(frame) > SHOWN:
        echo(f"... {len(frame):,} rows in all. Type --out lists.csv to write them.")
