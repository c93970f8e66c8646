"""Data sets and their profiles as tables in a terminal, or as JSON."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import typer
from rich.table import Table
from rich.text import Text

from workbench.command.console import console
from workbench.option_text import written


def show_sources(sources: Iterable[Mapping[str, Any]], as_json: bool) -> None:
    """Print the data sets with needs, parameters, origin and licence, as a table or as JSON."""
    if as_json:
        _print_json(list(sources))
        return
    shown = Table()
    for heading in ("data set", "needs", "parameters", "origin", "licence"):
        shown.add_column(heading, overflow="fold")
    for source in sources:
        cells = (source["name"], ", ".join(source["needs"]), written(source["parameters"]))
        shown.add_row(*map(Text, (*cells, source["origin"], source["licence"])))
    console.print(shown)


def show_profile(profile: Mapping[str, Any], as_json: bool) -> None:
    """The profile of a data set, as JSON keeps it, and what it means in a sentence."""
    if as_json:
        _print_json(profile)
        return
    from workbench.analysis import profiles
    from workbench.measure import memory

    title = Text(f"{profile['name']}: {profile['source']}", style="bold")
    shown = Table(title=title, title_justify="left", show_header=False)
    for what, lines in profiles.profile_facts(profile):
        shown.add_row(Text(what), Text("\n".join(lines)), end_section=True)
    console.print(shown)
    console.print(Text(profiles.profile_sentence(profile, memory.available_bytes())))


def print_files(paths: Iterable[Path]) -> None:
    """The files that were written, to the error stream, so that JSON stays alone."""
    for path in paths:
        typer.echo(f"Written: {path}", err=True)


def _print_json(value: Any) -> None:
    """Print a value as strict JSON; types that JSON lacks become text."""
    typer.echo(json.dumps(value, indent=1, allow_nan=False, default=str))
