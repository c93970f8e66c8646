"""Data sets and their profiles as tables in a terminal, or as JSON."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

import typer
from rich.table import Table
from rich.text import Text

from workbench import data
from workbench.analysis import profiles
from workbench.command.terminal import console
from workbench.option_text import written


def show_sources(sources: Iterable[Mapping[str, Any]], as_json: bool) -> None:
    """The data sets that there are."""
    if as_json:
        _print_json(list(sources))
        return
    shown = Table("data set", "needs", "parameters", "origin", "licence")
    for source in sources:
        cells = (source["name"], ", ".join(source["needs"]), written(source["parameters"]))
        shown.add_row(*map(Text, (*cells, source["origin"], source["licence"])))
    console.print(shown)


def show_profile(profile: data.Profile, as_json: bool) -> None:
    """The profile of a data set, and what it means in a sentence."""
    known = asdict(profile)
    if as_json:
        _print_json(known)
        return
    shown = Table(title=Text(f"{profile.name}: {profile.source}"), title_justify="left", show_header=False)
    for what, lines in profiles.facts(known):
        shown.add_row(Text(what), Text("\n".join(lines)), end_section=True)
    console.print(shown)
    console.print(Text(profiles.sentence(known)))


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=1, allow_nan=False, default=str))
