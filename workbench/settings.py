"""The table of settings of a configuration: everything that the project states about a setting, in one entry.

How to add a setting: one entry in `SETTINGS`, and the code that applies it. From an entry follow the field of a sweep's
configuration with its validation, the field of the training setup or the option of the optimizer, the column of
records, its role in analysis, the options of `workbench train` and `sweep`, the control of the panel and the notebook
parameter.

This module imports nothing of the project, so that every module may read the table.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

KINDS = {str: "text", dict: "text", int: "integer", float: "number", bool: "flag"}
"""What a column of each type is called in the table of trial rows."""


@dataclass(frozen=True)
class Control:
    """Input for a setting in the panel, in notebooks and in the command `sweep`.

    `kind` is one or many (of the allowed values; no and yes for a flag), text, number, or numbers (comma-separated).
    `main` controls are always shown, the others on request. `name` is also the parameter of a notebook.
    """

    name: str
    label: str
    kind: str
    default: Any = ""
    help: str = ""
    """What stands next to the field; empty: the setting's meaning."""
    main: bool = False
    natural: str = ""
    """The word for None among the values of a list."""


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
    control: Control | None = None

    @property
    def kind(self) -> str:
        """Type of the setting's record column: "text", "integer", "number" or "flag"."""
        return KINDS[self.type]


def _count(noun: str) -> Callable[[int], str]:
    """Return a function that formats a count with `noun`, "1 row" or "2 rows"."""
    return lambda count: f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


SYNTHETIC = "of a synthetic set 16,384"
FROM_DATA = "; by default what the data asks for"

SETTINGS = (
    Setting("dataset", str, "stdlib", "data set that is trained on: synthetic, built in, or a reader of your file",
            "data", goes_to=("data",), is_shown=True, noun="data",
            control=Control("dataset", "Data set", "one", "stdlib",
                            "What is trained on; uniform, power_law and mixed are generated at any size.", main=True)),
    Setting("path", str, None, "your file or folder, for data sets that are read", goes_to=("data",), is_file=True,
            control=Control("path", "Your file", "text", help="What to read, for data sets that are read.")),
    Setting("labels", str, None, "your file of labels (.npy or text), where the data has none", goes_to=("data",),
            is_file=True, say=lambda path: f"labels {path}",
            control=Control("labels", "Labels file", "text", help="A file, .npy or text, where the data has none.")),
    Setting("columns", str, None, "your file of column kinds (.toml), for tables", goes_to=("data",), is_file=True,
            say=lambda path: f"columns {path}",
            control=Control("columns", "Columns file", "text", help="The .toml file that says what each column of a "
                            "table is; empty: guessed.")),
    Setting("kind", str, None, "what labels are: classes, numbers, or multilabel (several classes a row); by default "
            "guessed from the file, and reported; none reads no labels, and times training with random ones",
            ("classes", "numbers", "multilabel", "none"), goes_to=("data",),
            say=lambda kind: f"labels as {kind}",
            control=Control("kind", "Labels are", "one", "guessed", "Classes, numbers, or several classes a row; "
                            "guessed: from the file, and reported.", natural="guessed")),
    Setting("reading", dict, None, "how the file is read: parameters of its reader, name=value with commas between",
            goes_to=("data",), say=lambda options: f"read with {options}",
            control=Control("reading", "Read with", "text", help="Parameters of the reader, name=value with commas "
                            "between; a wrong name lists all.")),
    Setting("positive", str, None, "positive class of a binary classifier; by default the larger of two, or the one "
            "called 1, true, yes", goes_to=("target",), say=lambda name: f"{name} is positive",
            control=Control("positive", "Positive class", "text", help="Positive class of a binary classifier; "
                            "empty: the larger of two, or the one called 1, true, yes.")),
    Setting("merge", bool, False, "whether a width below the number of classes makes the rarest of them one class",
            goes_to=("target",), say=lambda on: "rare classes as one" if on else "",
            control=Control("merge", "Merge rare classes", "one", "no", "yes: a width below the number of classes "
                            "makes the rarest of them one; no: it is refused.")),
    Setting("model", str, "softmax", "model that is trained, such as linear (numbers), logistic (two classes), "
            "softmax (classes)", "models", goes_to=("model", "target", "setup", "data"), is_shown=True, noun="model",
            control=Control("model", "Model", "one", "softmax", main=True)),
    Setting("model_options", str, None, "options of the model, name=value with commas between, such as hidden=64; by "
            "default its own", goes_to=("model", "setup"), say=lambda options: f"with {options}",
            control=Control("model_options", "Model options", "text", help="Options of the model, name=value with "
                            "commas between, such as hidden=64; a wrong name lists all.")),
    Setting("optimizer", str, "adagrad", "rule by which a gradient changes the weights, such as sgd, momentum, "
            "adagrad, adam, ftrl", "optimizers", noun="optimizer",
            control=Control("optimizer", "Optimizer", "one", "adagrad", "How a gradient changes the weights.")),
    Setting("rows", int, None, f"rows of the data, picked by the seed; by default all, {SYNTHETIC}", least=1,
            goes_to=("data",), column="rows_total", say=_count("row"),
            control=Control("rows", "Rows of the data", "numbers",
                            help="Number of rows to use; empty: all.")),
    Setting("features", int, None, f"D, columns of the data, the most frequent ones; by default all, {SYNTHETIC}",
            least=1, goes_to=("data",), say=_count("feature"),
            control=Control("features", "Features", "numbers", "2048",
                            "Columns of the data, the most frequent ones; empty: all there are.")),
    Setting("density", float, None, "density asked for, nnz / size; by default as the data has it, of a synthetic set "
            "0.01", above=0, most=1, goes_to=("data",), role="axis",
            control=Control("densities", "Densities", "numbers", "0.003, natural, 0.03, 0.1, 0.2",
                            "Shares of entries that are not zero, between commas: 0.01, 10 %, natural.", main=True)),
    Setting("width", int, None, f"N, columns of the weights: outputs of the model, or its factors{FROM_DATA}", least=1,
            goes_to=("data", "target", "model"), noun="width", say=lambda width: f"width {width}",
            control=Control("widths", "Widths", "numbers", "16",
                            "Columns of the weights, such as the number of classes; between commas.")),
    Setting("batch_rows", int, 256, "R, rows of the data in each training step", least=1, is_shown=True,
            noun="batch rows", say=lambda rows: f"{rows:,} row{'s' * (rows != 1)} a batch",
            control=Control("batch_rows", "Rows a batch", "numbers", "256")),
    Setting("dtype", str, "float32", "type of the values: float32 or float64", ("float32", "float64"),
            goes_to=("setup", "target"), noun="dtype"),
    Setting("threads", int, None, "processor threads that a trial may use; by default all cores", least=1,
            goes_to=("trial",), noun="threads", say=_count("thread"),
            control=Control("threads", "Threads", "numbers",
                            help="Processor threads each trial may use; empty: all cores.")),
    Setting("shuffle", bool, True, "whether rows are shuffled anew for each epoch",
            say=lambda on: "shuffled" if on else "in order"),
    Setting("ahead", bool, False, "whether the next batch is prepared on a thread parallel to the step",
            say=lambda on: "batches prepared ahead" if on else "batches prepared in the step"),
    Setting("epochs", int, 0, "passes over the training rows, from new weights; 0 times steps alone", least=0,
            goes_to=("trial",), say=lambda count: _count("epoch")(count) if count else "steps alone", train=3,
            control=Control("epochs", "Epochs", "number", "0",
                            "Passes over the data to train for loss and quality; 0: only time steps.")),
    Setting("device", str, "cpu", "where the step runs: cpu, or cuda for a CUDA device", ("cpu", "cuda"),
            noun="device", say=lambda device: f"on {device}",
            control=Control("devices", "Devices", "many", ("cpu",), "Where steps run: cpu, or cuda for a CUDA device; "
                            "without one, configurations there say so.")),
    Setting("intercept", bool, None, "whether the model adds a trained number for each output to its scores; by "
            "default it does for real data on cpu", goes_to=("setup", "model"), before=False,
            say=lambda on: "with an intercept" if on else ""),
    Setting("format", str, "csr", "what a batch is held in: dense, csr, csc, coo or row_sparse", "formats",
            role="line", is_shown=True,
            control=Control("formats", "Sparse formats", "many", ("csr",),
                            "What a sparse batch is held in; dense is always measured too, in all executions.")),
    Setting("engine", str, "ours", "whose kernels multiply: ours (native), vendor (SciPy, cuSPARSE) or dense (BLAS, "
            "cuBLAS)", "engines", role="line", is_shown=True,
            control=Control("engines", "Library", "many", ("ours", "vendor"), "Whose kernels multiply sparse arrays: "
                            "ours, or those of the vendor: SciPy, cuSPARSE.")),
    Setting("gradient", str, "row_sparse", "what the gradient of the weights is held in: dense, row_sparse (active "
            "rows), or fused with the update", ("dense", "row_sparse", "fused"), role="line", is_shown=True),
    Setting("update", str, "lazy", "rows that an update changes: standard (all), lazy (active ones), exact (lazy, and "
            "rows catch up on what they missed)", ("standard", "lazy", "exact"), role="line", is_shown=True,
            control=Control("updates", "Updates", "many", ("lazy", "standard"), "lazy: the active rows of a batch. "
                            "exact: those, others catch up. standard: all.")),
    Setting("storage", str, "same", "how data trained on dense is stored: same, as it is trained on; csr, each batch "
            "made dense; uint8 or float16, each batch widened, if every value is exact in it",
            ("same", "csr", "uint8", "float16"), role="line", noun="storage",
            control=Control("storages", "Dense data stored", "many", ("same", "csr"), "same: as it is trained on. csr: "
                            "each batch is made dense. uint8, float16: smaller, if values are exact.")),
    Setting("execution", str, "step", "how an epoch is executed: step (one call a step), cuda_graph (a step is one "
            "CUDA graph), epoch (one compiled call on cpu, csr or dense), dual (one call of dual ascent; sgd, exact, a "
            "decay)",
            ("step", "cuda_graph", "epoch", "dual"), role="line",
            control=Control("executions", "Execution", "many", ("step", "epoch"), "step: one call a step. "
                            "cuda_graph: a step is one CUDA graph. epoch: one compiled call on cpu. dual: one call "
                            "of dual ascent.")),
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
    Control("seconds", "Seconds a trial", "number", "0.15", "How long each configuration is timed in each round."),
    Control("rounds", "Rounds", "number", "12", "How often a comparison is measured at most; four are needed to "
            "decide."),
)  # fmt: skip
"""How a sweep measures, asked for next to the settings of its configurations."""
CONTROLS = (*(setting.control for setting in SETTINGS if setting.control), *MEASURE)
"""All that a person may choose of a study, in the order of its form."""


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
