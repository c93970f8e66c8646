"""Run folder of a sweep: one folder has one sweep at a time, and rows of others in it are not shown."""

from pathlib import Path
from typing import Any

from workbench import store
from workbench.analysis import words
from workbench.sweep import run_folder
from workbench.sweep.schedule import Schedule
from workbench.sweep.spec import Spec


def measured(spec: Spec) -> dict[str, Any]:
    """Parts of a spec that decide results: all but its name, what is said about it, and the order of measuring."""
    axes = {axis: frozenset(values) for axis, values in spec.axes.items()}
    contenders = frozenset(frozenset(contender.items()) for contender in spec.contenders)
    return spec.model_dump(exclude={"name", "description"}) | {"axes": axes, "contenders": contenders}


def holds(folder: Path, spec: Spec) -> bool:
    """Whether the run in `folder` is of this sweep; not where its spec cannot be read."""
    try:
        return measured(run_folder.read_spec(folder)) == measured(spec)
    except run_folder.RunError:
        return False


def stored(folder: Path) -> list[dict[str, Any]]:
    """All rows in a run folder, also those that its present sweep does not show; none without a file of rows."""
    return store.read(folder) if (folder / store.FILE).exists() else []


def named(name: str, root: Path = run_folder.ROOT) -> list[Path]:
    """The runs of a name under `root`, the newest first; those that cannot be read are left out."""
    return [folder for folder in run_folder.runs(root) if _name_of(folder) == name]


def _name_of(folder: Path) -> str:
    try:
        return run_folder.read(folder).name
    except run_folder.RunError:
        return ""


def taken_over(folder: Path, spec: Spec) -> str:
    """Sentence on the rows of another sweep in `folder` when this one is started there; "" where there are none."""
    rows = stored(folder)
    if not rows or holds(folder, spec):
        return ""
    taken = Schedule.of(spec, rows).reused
    answer = f"{words.plural(taken, 'trial')} of them answer" if taken else "none of them answers"
    return (
        f"{folder} has {words.plural(len(rows), 'row')} of another sweep: {answer} this one; the others stay in "
        f"{store.FILE} and are shown no more. --run names another folder."
    )


def _has_rows(folder: Path) -> bool:
    path = folder / store.FILE
    return path.exists() and path.stat().st_size > 0


def refuse_beside(folder: Path) -> None:
    """`RunError` where another run beside this folder is at work: trials of two sweeps disturb each other."""
    folder = folder.resolve()
    for other in run_folder.runs(folder.parent):
        if other.resolve() != folder and _is_alive(other):
            raise run_folder.RunError(
                f"{other.name} is at work, and two sweeps at once disturb each other. Wait for it, or stop it first: "
                f"workbench stop {other.name}"
            )


def _is_alive(folder: Path) -> bool:
    try:
        return run_folder.read(folder).alive
    except run_folder.RunError:
        return False


def of(spec: Spec, folder: Path, reused: int) -> Path:
    """Folder to start a sweep in that would go into `folder`, of whose rows `reused` answer it.

    That is the folder itself where it holds this sweep, rows that answer it, or none at all. Else it stays as it is:
    another run of the same name that holds this sweep is resumed, or a folder NAME-2, NAME-3, ... is new.
    """
    if reused or not _has_rows(folder) or holds(folder, spec):
        return folder
    root, number = folder.parent, 2
    same = (run for run in named(spec.name, root) if holds(run, spec))
    while (root / f"{spec.name}-{number}").exists():
        number += 1
    return next(same, root / f"{spec.name}-{number}")
