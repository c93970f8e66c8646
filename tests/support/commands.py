"""The command line, as tests type it."""

from click.testing import Result
from typer.testing import CliRunner

from workbench.command import cli


def run(*words: object) -> Result:
    """What a command ended with and said."""
    return CliRunner().invoke(cli.app, list(map(str, words)))
