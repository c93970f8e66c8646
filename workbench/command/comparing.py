"""`workbench compare`: two runs, as text, as Markdown, and as an exit status."""

import subprocess
import tempfile
from pathlib import Path

import pandas as pd
import typer

from workbench import atomic_files, store
from workbench.analysis import changes
from workbench.analysis.changes import Changes, compare_runs
from workbench.analysis.pairs import CompareError
from workbench.command import exit_codes, terminal
from workbench.command.console import make_table
from workbench.command.output import echo
from workbench.reports import export, page, private_paths


def frame_of(named: str) -> pd.DataFrame:
    """Return the records of a run folder, a .jsonl file, or REVISION:FILE from the git repository.

    CompareError if git does not have the file.
    """
    revision, colon, path = named.partition(":")
    if Path(named).exists() or not colon or not revision:
        return export.frame_of(named)
    done = subprocess.run(["git", "show", "--end-of-options", f"{revision}:./{path}"], capture_output=True, check=False)
    if done.returncode:
        why = done.stderr.decode(errors="replace").strip()
        raise CompareError(
            f"git has no {path} at {revision}: {why}. Give a run folder, a .jsonl file or REVISION:FILE."
        )
    with tempfile.TemporaryDirectory(prefix="workbench-compare-") as folder:
        file = Path(folder) / f"rows{''.join(Path(path).suffixes[-2:])}"
        file.write_bytes(done.stdout)
        return store.frame(store.read(file))


def run(before: str, after: str, within: float, out: Path | None) -> None:
    """Compare a run with a second one; print, and write Markdown to `out` unless None.

    Exits with status 1 if something is worse. `within` is the factor up to which times are the same. CompareError if
    nothing can be compared.
    """
    names = private_paths.file_names((before, after))
    found = compare_runs(frame_of(before), frame_of(after), within)
    show(found)
    if out is not None:
        atomic_files.write(out, page.of_runs(found, names.get(before, before), names.get(after, after)))
        echo(out)
    if found.is_worse:
        raise typer.Exit(exit_codes.FAILURE)


def show(found: Changes) -> None:
    """Print the headline of a comparison, its reasons, and a table of the configurations that differ."""
    console = terminal.console
    console.print(changes.headline(found), style="bold", markup=False)
    for sentence in changes.sentences(found):
        console.print(sentence, markup=False)
    rows = [row for row in changes.table(found.configurations) if row[1] != "same"]
    if rows:
        console.print(make_table(changes.COLUMNS, rows, "Configurations that are not the same"))
