"""Vowpal Wabbit's command line as its Python package has it, on its own text: the rows of the svmlight file.

The text is made before the clock starts. With its cache the text is parsed in the first pass only, without it there is
one pass.
"""

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from workbench.bench.end.contract import PASSES, Candidate, Commands, Paths, register

PROGRAM = (sys.executable, "-m", "vowpalwabbit")
LOGISTIC = ("--quiet", "--loss_function", "logistic", "-b", "22")


def text_of(svmlight: Path) -> Path:
    """Return the path of the rows as its text, written from an svmlight file of labels 0 and 1 if it is not there."""
    made = svmlight.with_suffix(".vw")
    if not made.exists():
        with svmlight.open(encoding="utf-8") as rows, made.open("w", encoding="utf-8") as file:
            for row in rows:
                label, _, entries = row.strip().partition(" ")
                file.write(f"{1 if float(label) > 0 else -1} | {entries}\n")
    return made


def commands(has_cache: bool, paths: Paths, setting: Mapping[str, Any]) -> Commands:
    """Return the commands that train and predict."""
    model = str(paths.folder / "model.vw")
    passes = ["--passes", str(setting["passes"]), "--cache_file", str(paths.folder / "rows.cache")] if has_cache else []
    train = [*PROGRAM, *LOGISTIC, *passes, "-d", str(text_of(paths.train)), "-f", model]
    test = [*PROGRAM, "--quiet", "-t", "-i", model, "-d", str(text_of(paths.held_out)), "--link", "logistic"]
    return [("train", train), ("apply", [*test, "-p", str(paths.predictions)])]


for _name, _has_cache, _settings in (
    ("Vowpal Wabbit", False, PASSES[:1]),
    ("Vowpal Wabbit, cache", True, PASSES[1:]),
):
    register(
        Candidate(
            _name,
            "competitor",
            partial(commands, _has_cache),
            _settings,
            formats=("svmlight",),
            package="vowpalwabbit",
            install="pip install 'sparse-workbench[competitors]'",
        )
    )
