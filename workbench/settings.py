"""The table of settings: everything that the project states about a setting, in one entry.

How to add a setting: one entry in `SETTINGS`, and the code that applies it. From an entry follow the field of a sweep's
configuration with its validation, the field of the training setup or the option of the optimizer, the column of
records, its role in analysis, the options of commands, the keyword of `wb.sweep`, the field of the panel and the
notebook parameter: all of one name, with the same words.

This module imports nothing of the project, so that every module may read the table.
"""

import functools
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KINDS = {str: "text", dict: "text", int: "integer", float: "number", bool: "flag"}
"""What a column of each type is called in the table of trial rows."""
FLAG_WORDS = {False: "no", True: "yes"}
"""How a setting that is on or off is typed."""


@dataclass(frozen=True)
class Setting:
    """One setting. A `default` of None is replaced by what data, optimizer or machine suggest.

    `allowed` are the allowed values, or the name of their registry (`sweeps.spec.REGISTRIES`); numbers may be bounded
    by `least`, `above` and `most`. `goes_to` names where it is applied: data, target, model, setup, optimizer, trial.
    `role` is its role in analysis: records that differ in the axis form one line, in a line setting several lines of
    one chart, in a group setting several charts; of records that differ in a best setting only the best is shown.
    """

    name: str
    type: type
    default: Any
    meaning: str
    allowed: tuple[str, ...] | str = ()
    least: float | None = None
    above: float | None = None
    most: float | None = None
    goes_to: tuple[str, ...] = ("setup",)
    role: str = "group"
    is_shown: bool = False
    """Whether it is named where a configuration is described, also at its default."""
    is_file: bool = False
    """Whether it names a file of the user's, taken from the folder of the spec."""
    column: str = ""
    """The column of trial rows, where it has another name: one that holds what was measured."""
    noun: str = ""
    """The setting in a sentence."""
    say: Callable[[Any], str] = str
    """A value in words, as it stands in the name of a group."""
    before: Any = None
    """What rows from before the setting were measured with, where that is not the default."""
    train: Any = None
    """The default of the command `train`, where it is another."""
    label: str = ""
    """What its field is called in the panel; "" if a study does not choose it."""
    chosen: str | tuple[str, ...] | None = None
    """What a study takes by default, as it is typed, where that is not the default; a tuple where it takes several."""
    natural: str = ""
    """The word for None among the values of a list."""
    is_main: bool = False
    """Whether the panel always shows it; others are shown on request."""
    is_single: bool = False
    """Whether a study takes one number of it, not several between commas."""

    @property
    def kind(self) -> str:
        """Type of the setting's record column: "text", "integer", "number" or "flag"."""
        return KINDS[self.type]

    @property
    def option(self) -> str:
        """Option of the command line that sets it, such as "--batch-rows"."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def help(self) -> str:
        """The meaning as a sentence: of options of commands, and next to fields of the panel."""
        return f"{self.meaning[:1].upper()}{self.meaning[1:]}."

    @property
    def widget(self) -> str:
        """Input of a study: "many" or "one" of a list, "numbers" between commas, one "number", or "text"."""
        if isinstance(self.chosen, tuple):
            return "many"
        if self.allowed or self.type is bool:
            return "one"
        return "text" if self.type in (str, dict) else "number" if self.is_single else "numbers"

    @property
    def usual(self) -> str | tuple[str, ...]:
        """What a study takes by default, as it is typed: text, or a tuple of names."""
        if self.chosen is not None or self.default is None:
            return self.natural if self.chosen is None else self.chosen
        return FLAG_WORDS[self.default] if self.type is bool else str(self.default)


def _count(noun: str) -> Callable[[int], str]:
    """Return a function that formats a count with `noun`, "1 row" or "2 rows"."""
    return lambda count: f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


SYNTHETIC = "of a synthetic set 16,384"
FROM_DATA = "; by default what the data asks for"

SETTINGS = (
    Setting("dataset", str, "stdlib", "data set that is trained on: synthetic, built in, or a reader of your file",
            "data", goes_to=("data",), is_shown=True, noun="data", label="Data set", is_main=True),
    Setting("path", str, None, "your file or folder, for data sets that are read", goes_to=("data",), is_file=True,
            label="Your file"),
    Setting("labels", str, None, "your file of labels (.npy or text), where the data has none", goes_to=("data",),
            is_file=True, say=lambda path: f"labels {path}", label="Labels file"),
    Setting("columns", str, None, "your file of column kinds (.toml), for tables", goes_to=("data",), is_file=True,
            say=lambda path: f"columns {path}", label="Columns file"),
    Setting("kind", str, None, "what labels are: classes, numbers, or multilabel (several classes a row); by default "
            "guessed from the file, and reported; none reads no labels, and times training with random ones",
            ("classes", "numbers", "multilabel", "none"), goes_to=("data",),
            say=lambda kind: f"labels as {kind}", label="Labels are", natural="guessed"),
    Setting("reading", dict, None, "how the file is read: parameters of its reader, name=value with commas between",
            goes_to=("data",), say=lambda options: f"read with {options}", label="Read with"),
    Setting("positive", str, None, "positive class of a binary classifier; by default the larger of two, or the one "
            "called 1, true, yes", goes_to=("target",), say=lambda name: f"{name} is positive", label="Positive class"),
    Setting("merge", bool, False, "whether a width below the number of classes makes the rarest of them one class",
            goes_to=("target",), say=lambda on: "rare classes as one" if on else "", label="Merge rare classes"),
    Setting("model", str, "softmax", "model that is trained, such as linear (numbers), logistic (two classes), "
            "softmax (classes)", "models", goes_to=("model", "target", "setup", "data"), is_shown=True, noun="model",
            label="Model", is_main=True),
    Setting("model_options", dict, None, "options of the model, name=value with commas between, such as hidden=64; by "
            "default its own", goes_to=("model", "setup"), say=lambda options: f"with {options}",
            label="Model options"),
    Setting("optimizer", str, "adagrad", "rule by which a gradient changes the weights, such as sgd, momentum, "
            "adagrad, adam, ftrl", "optimizers", noun="optimizer", label="Optimizer"),
    Setting("rows", int, None, f"rows of the data, picked by the seed; by default all, {SYNTHETIC}", least=1,
            goes_to=("data",), column="rows_total", say=_count("row"), label="Rows of the data"),
    Setting("features", int, None, f"D, columns of the data, the most frequent ones; by default all, {SYNTHETIC}",
            least=1, goes_to=("data",), say=_count("feature"), label="Features", chosen="2048"),
    Setting("density", float, None, "share of entries that are not zero, nnz / size, such as 0.01; by default natural, "
            "as the data has it, of a synthetic set 0.01", above=0, most=1, goes_to=("data",), role="axis",
            label="Densities", chosen="0.003, natural, 0.03, 0.1, 0.2", is_main=True),
    Setting("width", int, None, f"N, columns of the weights: outputs of the model, or its factors{FROM_DATA}", least=1,
            goes_to=("data", "target", "model"), noun="width", say=lambda width: f"width {width}",
            label="Widths", chosen="16"),
    Setting("batch_rows", int, 256, "R, rows of the data in each training step", least=1, is_shown=True,
            noun="batch rows", say=lambda rows: f"{rows:,} row{'s' * (rows != 1)} a batch", label="Rows a batch"),
    Setting("dtype", str, "float32", "type of the values: float32 or float64", ("float32", "float64"),
            goes_to=("setup", "target"), noun="dtype"),
    Setting("threads", int, None, "processor threads that a trial may use; by default all cores", least=1,
            goes_to=("trial",), noun="threads", say=_count("thread"), label="Threads"),
    Setting("shuffle", bool, True, "whether rows are shuffled anew for each epoch",
            say=lambda on: "shuffled" if on else "in order"),
    Setting("ahead", bool, False, "whether the next batch is prepared on a thread parallel to the step",
            say=lambda on: "batches prepared ahead" if on else "batches prepared in the step"),
    Setting("epochs", int, 0, "passes over the training rows, from new weights; 0 times steps alone", least=0,
            goes_to=("trial",), say=lambda count: _count("epoch")(count) if count else "steps alone", train=3,
            label="Epochs", is_single=True),
    Setting("device", str, "cpu", "where the step runs: cpu, or cuda for a CUDA device", ("cpu", "cuda"),
            noun="device", say=lambda device: f"on {device}", label="Devices", chosen=("cpu",)),
    Setting("intercept", bool, None, "whether the model adds a trained number for each output to its scores; by "
            "default it does for real data on cpu", goes_to=("setup", "model"), before=False,
            say=lambda on: "with an intercept" if on else ""),
    Setting("format", str, "csr", "what a batch is held in: dense, csr, csc, coo or row_sparse", "formats",
            role="line", is_shown=True, label="Sparse formats", chosen=("csr",)),
    Setting("engine", str, "ours", "whose kernels multiply: ours (native), vendor (SciPy, cuSPARSE) or dense (BLAS, "
            "cuBLAS)", "engines", role="line", is_shown=True, label="Library", chosen=("ours", "vendor")),
    Setting("gradient", str, "row_sparse", "what the gradient of the weights is held in: dense, row_sparse (active "
            "rows), or fused with the update", ("dense", "row_sparse", "fused"), role="line", is_shown=True),
    Setting("update", str, "lazy", "rows that an update changes: standard (all), lazy (active ones), exact (lazy, and "
            "rows catch up on what they missed)", ("standard", "lazy", "exact"), role="line", is_shown=True,
            label="Updates", chosen=("lazy", "standard")),
    Setting("storage", str, "same", "how data trained on dense is stored: same, as it is trained on; csr, each batch "
            "made dense; uint8 or float16, each batch widened, if every value is exact in it",
            ("same", "csr", "uint8", "float16"), role="line", noun="storage",
            label="Dense data stored", chosen=("same", "csr")),
    Setting("execution", str, "step", "how an epoch is executed: step (one call a step), cuda_graph (a step is one "
            "CUDA graph), epoch (one compiled call on cpu, csr or dense), dual (one call of dual ascent; sgd, exact, a "
            "decay)",
            ("step", "cuda_graph", "epoch", "dual"), role="line", label="Execution", chosen=("step", "epoch")),
    Setting("serial", bool, False, "run on one thread only; dense candidates are always measured both ways",
            goes_to=("trial",), role="line"),
    Setting("trainers", int, 1, "processes that share the training, each with a part of the rows and of the weights; "
            "on one machine they share its threads", least=1, role="line", noun="trainers"),
    Setting("learning_rate", float, None, "step length of the optimizer; by default the optimizer's own", above=0,
            goes_to=("optimizer",), role="best"),
    Setting("decay", float, None, "weight decay of the optimizer; by default the optimizer's own", least=0,
            goes_to=("optimizer",), noun="decay", say=lambda decay: f"decay {decay:g}" if decay else ""),
    Setting("seed", int, 0, "seed of the random choice of rows, held-out rows, starting weights and order of "
            "batches", least=0, goes_to=("setup", "data"), role="best"),
)  # fmt: skip
BY_NAME = {setting.name: setting for setting in SETTINGS}

MEASURE = (
    Setting("trial_seconds", float, 0.15, "how long each configuration is timed in each round", goes_to=("measure",),
            role="measure", label="Seconds a trial", is_single=True),
    Setting("rounds", int, 12, "how often a comparison is measured at most; four are needed to decide",
            goes_to=("measure",), role="measure", label="Rounds", is_single=True),
)  # fmt: skip
"""How a sweep measures, chosen next to the settings of its configurations."""
CHOICES = {setting.name: setting for setting in (*SETTINGS, *MEASURE) if setting.label}
"""All that a person may choose of a study by name, in the order of its form."""


LABEL = Setting("label", str, None, "column or variable of labels; by default a guess, which is printed",
                goes_to=("data",), label="Label")  # fmt: skip
"""The parameter of readers of named columns that has an option and a field of its own."""
READING = (*(BY_NAME[name] for name in ("dataset", "labels", "columns", "kind", "reading")), LABEL)
"""What says how a file is read, for all that reads one."""


@functools.cache
def names(goes_to: str = "", role: str = "") -> tuple[str, ...]:
    """Return the names of the settings with this destination and role, in the order of `SETTINGS`; "" for any.

    `goes_to` is for example "setup" or "data", `role` "line", "group", "axis" or "best".

    >>> names(role="line")
    ('format', 'engine', 'gradient', 'update', 'storage', 'execution', 'serial', 'trainers')
    """
    chosen = (
        setting for setting in SETTINGS if (not goes_to or goes_to in setting.goes_to) and role in ("", setting.role)
    )
    return tuple(setting.name for setting in chosen)


@functools.cache
def columns(role: str) -> tuple[str, ...]:
    """Return the names of the record columns of the settings with this role ("line", "axis", ...), in table order."""
    return tuple(BY_NAME[name].column or name for name in names(role=role))


def value_or_default(name: str, value: Any) -> Any:
    """Return `value`, or if it is None the value of the setting `name` that such a record was measured with.

    That is the value in force before records had the setting, else its default.
    """
    setting = BY_NAME[name]
    return value if value is not None else setting.default if setting.before is None else setting.before


COMPLETED = {"engine": "the format", "gradient": "the format", "update": "the gradient"}
"""Settings that a training completes where they are not given, and what they have to suit."""


def train_command(values: Mapping[str, Any]) -> str:
    """Return the `workbench train` command with these values of settings; what it takes by default is left out.

    >>> train_command({"dataset": "uniform", "batch_rows": 64, "serial": True, "format": "csr", "engine": "ours"})
    'workbench train --dataset uniform --batch-rows 64 --threads 1 --engine ours'
    """
    words = ["workbench", "train"]
    values = {**values, "serial": False, "threads": 1} if values.get("serial") else values
    for setting in SETTINGS:
        value = values.get(setting.name)
        usual = setting.default if setting.train is None else setting.train
        is_usual = value == usual and setting.name not in COMPLETED
        if value is None or is_usual or (setting.name == "epochs" and not value):
            continue
        if setting.type is bool:
            words.append(setting.option if value else setting.option.replace("--", "--no-", 1))
            continue
        if setting.is_file and Path(value).is_relative_to(Path.cwd()):  # as it is typed here
            value = Path(value).relative_to(Path.cwd())
        words += [setting.option, str(value)]
    return shlex.join(words)
