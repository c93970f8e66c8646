"""`workbench compare`: two runs, or rows of another tool next to a run, as text, as Markdown, and as an exit status."""

import subprocess
import tempfile
from collections.abc import Sequence
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


def run(before: str, after: str | None, with_files: Sequence[Path], within: float, out: Path | None) -> None:
    """Compare a run with a second one and with files of others; print, and write Markdown to `out` unless None.

    Exits with status 1 if something is worse. `within` is the factor up to which times are the same. BadParameter
    without a second run and files; CompareError if nothing can be compared.
    """
    if after is None and not with_files:
        raise typer.BadParameter("Give a second run, or rows of another tool by --with FILE.jsonl.")
    names = private_paths.file_names(filter(None, (before, after)))
    first, texts, is_worse = frame_of(before), [], False
    if after is not None:
        found = compare_runs(first, frame_of(after), within)
        is_worse = found.is_worse
        show(found)
        texts.append(page.of_runs(found, names.get(before, before), names.get(after, after)))
    for path in with_files:
        comparisons = changes.compare_external(first, others_read(path), within)
        terminal.console.print(
            make_table(
                changes.EXTERNAL_COLUMNS, changes.external_table(comparisons), f"{path.name} compared with {before}"
            )
        )
        for sentence in changes.external_notes(comparisons):
            terminal.console.print(sentence, markup=False)
        texts.append(page.of_others(comparisons, path.name, names.get(before, before)))
    if out is not None:
        atomic_files.write(out, "\n".join(texts))
        echo(out)
    if is_worse:
        raise typer.Exit(exit_codes.FAILURE)


def others_read(path: Path) -> list[dict]:
    """Return the records of another tool in a JSON lines file; CompareError if it has none."""
    rows = store.external.read(path)
    if not rows:
        raise CompareError(f"{path} has no rows; one JSON object a line is expected, with who and seconds.")
    return rows


def show(found: Changes) -> None:
    """Print the headline of a comparison, its reasons, and tables of kernels and configurations that differ."""
    console = terminal.console
    console.print(changes.headline(found), style="bold", markup=False)
    for sentence in changes.sentences(found):
        console.print(sentence, markup=False)
    for title, of in (("Kernels", found.kernels), ("Configurations", found.configurations)):
        rows = [row for row in changes.table(of) if row[1] != "same"]
        if rows:
            console.print(
                make_table((title[:-1].lower(), *changes.COLUMNS[1:]), rows, f"{title} that are not the same")
            )
