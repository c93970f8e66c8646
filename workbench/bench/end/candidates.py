"""Candidates of `bench end`: the commands of each library that lead from a file to predictions.

How to add one: a call of `register` behind the function that returns its commands.
"""

import importlib.util
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from kernels.registry import Registry
from workbench.bench.shapes import BenchError

PASSES = ({"passes": 1}, {"passes": 2}, {"passes": 4}, {"passes": 8}, {"passes": 16})
"""Settings of what goes over the rows again and again."""


class Paths(NamedTuple):
    """Files of one run: `train` and `held_out` are read; `predictions` and what is in `folder` are written."""

    format: str
    train: Path
    held_out: Path
    folder: Path

    @property
    def predictions(self) -> Path:
        """File with a line for each row held out, whose last field is the probability of the label 1."""
        return self.folder / "predictions.csv"

    @property
    def stages(self) -> Path:
        """File of seconds by stage, JSON, if a process measures them."""
        return self.folder / "stages.json"


Commands = list[tuple[str, list[str]]]
"""Processes that run one after the other: the stage that each is, and its command line."""


@dataclass(frozen=True)
class Candidate:
    """A way from the file to predictions: `commands(paths, setting)` are its processes, `settings` what is tried.

    `formats` lists what it reads. `program` has to be on the path, `package` to be installed; `install` says how.
    """

    name: str
    side: str
    commands: Callable[[Paths, Mapping[str, Any]], Commands]
    settings: Sequence[Mapping[str, Any]]
    formats: tuple[str, ...] = ("svmlight", "clicks")
    package: str = ""
    program: str = ""
    install: str = ""

    def unavailable(self, format: str) -> str:
        """Return the reason why it does not take part, "" if it does; nothing is imported."""
        if format not in self.formats:
            return f"It reads {' and '.join(self.formats)} only."
        if self.package and not importlib.util.find_spec(self.package):
            return f"{self.package} is not installed: {self.install}."
        if self.program and not shutil.which(self.program):
            return f"The program {self.program} is not installed: {self.install}."
        return ""


_candidates: Registry[Candidate] = Registry("candidate", (), BenchError)
register, names, get = _candidates.register, _candidates.names, _candidates.get


# The project's command line: `workbench train --save`, then `workbench apply`; first as they are, then with passes.


def project_commands(paths: Paths, setting: Mapping[str, Any]) -> Commands:
    """Return the two commands that a user types."""
    workbench, model = [sys.executable, "-m", "workbench"], str(paths.folder / "model")
    train = [*workbench, "train", str(paths.train), "--save", model]
    train += ["--epochs", str(setting["passes"])] if "passes" in setting else []
    apply = [*workbench, "apply", model, str(paths.held_out), "--out", str(paths.predictions)]
    return [("train", train), ("apply", apply)]


register(Candidate("project", "project", project_commands, ({}, *PASSES)))


# Scripts of few lines with LIBLINEAR and SGDClassifier of scikit-learn, and with PyTorch's EmbeddingBag.


SCRIPT = Path(__file__).with_name("script.py")
STRENGTHS = ({"C": 0.01}, {"C": 0.1}, {"C": 1.0})
"""Inverse strengths of the penalty that LIBLINEAR tries."""
DECAYS = ({"alpha": 1e-2}, {"alpha": 1e-3}, {"alpha": 1e-4}, {"alpha": 1e-5})
"""Strengths of the penalty that SGDClassifier tries; it ends by itself."""


def script_commands(library: str, paths: Paths, setting: Mapping[str, Any]) -> Commands:
    """Return the command that runs the script of a library."""
    (value,) = setting.values()
    files = map(str, (paths.train, paths.held_out, paths.predictions, paths.stages))
    return [("script", [sys.executable, str(SCRIPT), library, paths.format, *files, str(value)])]


register(Candidate("liblinear", "competitor", partial(script_commands, "liblinear"), STRENGTHS))
register(Candidate("SGDClassifier", "competitor", partial(script_commands, "sgd"), DECAYS))
register(
    Candidate(
        "EmbeddingBag",
        "competitor",
        partial(script_commands, "embedding_bag"),
        PASSES,
        package="torch",
        install="pip install 'sparse-workbench[pytorch]'",
    )
)


# Vowpal Wabbit's command line as its Python package has it, on its own text: the rows of the svmlight file.
#
# The text is made before the clock starts. With its cache the text is parsed in the first pass only, without it there
# is one pass.


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


def vowpal_wabbit_commands(has_cache: bool, paths: Paths, setting: Mapping[str, Any]) -> Commands:
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
            partial(vowpal_wabbit_commands, _has_cache),
            _settings,
            formats=("svmlight",),
            package="vowpalwabbit",
            install="pip install 'sparse-workbench[competitors]'",
        )
    )
