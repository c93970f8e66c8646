"""The spec of a sweep: a TOML file, validated; unknown keys and values are errors that list the known ones.

>>> spec = parse_spec('''
... name = "example"
... [axes]
... dataset = "uniform"
... format = ["csr", "dense"]
... density = [0.01, 0.1]
... ''')
>>> spec.axes["density"]
(0.01, 0.1)
"""

import collections
import functools
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import pydantic

import kernels
from kernels.registry import unknown_name
from workbench import data, formats, models, optimizers, settings
from workbench.data.files.nearest import nearest_file
from workbench.json_text import parsed
from workbench.measure import closure
from workbench.measure.clock import MOST_ROUNDS, Policy
from workbench.ops.products import ENGINES
from workbench.ops.products.methods import METHODS
from workbench.option_text import Options, read_options
from workbench.settings import Setting
from workbench.sweeps import source_digests
from workbench.training import Setup


class InvalidOption(NamedTuple):
    """One thing that is wrong with a spec or a choice: in `text`, with the setting that it is about and what came."""

    text: str
    option: str = ""
    value: Any = None


class SpecError(ValueError):
    """A spec, or choices of a study, that cannot be used; the message says where, what came, what is allowed.

    `problems` has each thing that is wrong: whoever shows the error names the setting as it is typed there.
    """

    def __init__(self, *problems: str | InvalidOption) -> None:
        """Keep the problems; as text there is a line for each, which begins with "option = value: " if it has one."""
        self.problems = [InvalidOption(problem) if isinstance(problem, str) else problem for problem in problems]
        super().__init__(self.worded(lambda option, value: f"{option} = {value!r}"))

    def worded(self, name: Callable[[str, Any], str]) -> str:
        """Return the message with the setting of each problem in the words of `name(option, value)`."""
        return "\n".join(f"{name(option, value)}: {text}" if option else text for text, option, value in self.problems)


STRICT = pydantic.ConfigDict(extra="forbid", frozen=True)
TYPED = pydantic.ConfigDict(extra="forbid", frozen=True, strict=True)
"""Of tables whose values are taken as they are typed: true is no whole number, and "64" is none."""
MOST_INTEGER = 2**63 - 1
"""Largest whole number of a setting: what a record and an array index can hold."""
Positive = Annotated[int, pydantic.Field(ge=1, le=MOST_INTEGER)]
TYPE_WORDS = collections.defaultdict(
    lambda: "of another type",
    {bool: "true or false", int: "a whole number", float: "a number", str: "text", type(None): "nothing"},
)
"""Types of values in a message."""
FILES = tuple(setting.name for setting in settings.SETTINGS if setting.is_file)
"""Axes that name files of the user's."""


def _one_of(known) -> Any:
    """Return the pydantic type of a string that must be in `known()`.

    `known` is a callable that gives names; it is called at each validation, since entries may be registered later.
    """

    def check(value: str) -> str:
        """Return `value` unchanged if it is in `known()`; ValueError with the nearest known name otherwise."""
        if value not in known():
            raise ValueError(unknown_name("value", value, known()))
        return value

    return Annotated[str, pydantic.AfterValidator(check)]


REGISTRIES: dict[str, Callable[[], Iterable[str]]] = {
    "data": data.names,
    "models": models.names,
    "formats": formats.names,
    "optimizers": optimizers.names,
    "engines": lambda: ENGINES,
}
"""The names that a setting of the table allows, by the registry that it names."""

MEANINGS: dict[str, Callable[[], dict[str, str]]] = {
    "models": lambda: {name: models.get(name).predicts for name in models.names()}
}
"""What each name of a registry stands for, in a few words, where its entries say so."""


def allowed_values(setting: Setting) -> tuple[str, ...]:
    """Return the values that a setting may have, as strings; empty if any value of its type is allowed.

    Names of a registry, such as "models", are looked up now.
    """
    return tuple(REGISTRIES[setting.allowed]()) if isinstance(setting.allowed, str) else setting.allowed


def _typed(type_of_value: type, value: Any) -> Any:
    """Return a value whose type fits the setting's `type_of_value` (bool, int or float); ValueError otherwise.

    None passes, NumPy scalars become Python ones; nothing else is converted: an int stays an int for a float setting, a
    bool is no int, and NaN and infinities are errors.
    """
    value = value.item() if isinstance(value, np.generic) else value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    allowed = {bool: isinstance(value, bool), int: is_number and isinstance(value, int), float: is_number}
    if value is not None and not allowed[type_of_value]:
        raise ValueError(f"{value!r} is {TYPE_WORDS[type(value)]}; expected {TYPE_WORDS[type_of_value]}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value!r} is not finite; expected a finite number")
    return value


def _options(name: str, given: Any) -> Options | None:
    """Return the options of a setting `name` as a mapping, None if there are none; ValueError for what is neither."""
    if not isinstance(given, Mapping | str | None):
        raise ValueError(f"{given!r} is {TYPE_WORDS[type(given)]}; expected options, name=value")
    return read_options(given, name) or None


def _field(setting: Setting) -> tuple[Any, Any]:
    """Return (type, default) of a setting's pydantic field.

    The type has its bounds, allowed values and None if default.
    """
    kind: Any = setting.type
    if setting.allowed:
        kind = _one_of(functools.partial(allowed_values, setting))
    if setting.type is dict:  # stored as the text that people type
        read = pydantic.BeforeValidator(functools.partial(_options, setting.name))
        return Annotated[Any, read, pydantic.PlainSerializer(lambda options: options and str(options))], setting.default
    if setting.type is not str:
        kind = Annotated[kind, pydantic.BeforeValidator(functools.partial(_typed, setting.type))]
    most = MOST_INTEGER if setting.type is int and setting.most is None else setting.most
    bounds: dict[str, Any] = {"ge": setting.least, "gt": setting.above, "le": most}
    if bounds := {bound: limit for bound, limit in bounds.items() if limit is not None}:
        kind = Annotated[kind, pydantic.Field(**bounds)]
    return (kind | None if setting.default is None else kind), setting.default


_FIELDS: dict[str, Any] = {setting.name: _field(setting) for setting in settings.SETTINGS}
_Configuration: Any = pydantic.create_model("_Cell", __config__=STRICT, **_FIELDS)


class Configuration(_Configuration):
    """One point of a sweep: a value for each setting of the table, and nothing else.

    What is None is as the data, the optimizer or the machine suggests. On a machine without a CUDA device,
    configurations of `device` cuda give rows that say so; so do those of `execution` graph on cpu.
    """


SECONDS_COUNTED = 0.005
"""What a sample counts for at least, of `trial_seconds`: 30 samples of 1 ms are as many as 0.15 s have of 5 ms."""


class Measure(pydantic.BaseModel):
    """Settings of measuring each trial, how long and how often; the defaults suit steps of 10 us to 30 ms.

    Rounds are added up to `rounds` if the ratio of both sides is not known well enough before. A trial is disturbed if
    other programs take more than the share `busy_most` of all cores, by default so much that its threads had to share a
    core. In a `race` candidates that are significantly slower than the fastest leave, and rounds go on until more of
    them would gain less than 1 %. With `until`, a share such as 0.1, densities are added around each break-even until
    its interval is narrower. With `roofs` the sweep measures what this machine's memory and cores allow, about two
    seconds, and rows have the bounds of their kernels; not with fewer than four rounds.
    """

    model_config = TYPED

    seconds_warmup: Annotated[float, pydantic.Field(ge=0)] = Policy.seconds_warmup
    seconds_sample: Annotated[float, pydantic.Field(ge=0)] = Policy.seconds_sample
    trial_seconds: Annotated[float, pydantic.Field(ge=0)] = Policy.seconds_total
    samples_least: Positive = Policy.samples_least
    samples_most: Positive = Policy.samples_most
    rounds: Annotated[int, pydantic.Field(ge=1, le=MOST_ROUNDS)] = MOST_ROUNDS
    busy_most: Annotated[float, pydantic.Field(gt=0, le=1)] | None = None
    race: bool = False
    until: Annotated[float, pydantic.Field(gt=0)] | None = None
    roofs: bool = True

    def policy(self) -> Policy:
        """Return the `Policy` of these settings for the sampling clock: warm-up, sample length and sample counts."""
        settings = self.model_dump(exclude={"trial_seconds", "rounds", "busy_most", "race", "until", "roofs"})
        counted = SECONDS_COUNTED if self.seconds_sample else 0.0
        return Policy(**settings, seconds_total=self.trial_seconds, seconds_counted=counted)


class Limits(pydantic.BaseModel):
    """Limits of one trial, and of the whole sweep.

    `seconds_cell` are those of a trial after its code is compiled. `bytes_cell` None is 80 % of the memory available
    when the sweep starts. After `budget` seconds no round is begun, and of a race no trial that would end later; the
    trial at work is ended at `seconds_end`, whatever it does, by default soon after the budget.
    """

    model_config = TYPED

    seconds_cell: Annotated[float, pydantic.Field(gt=0)] = 120.0
    bytes_cell: Positive | None = None
    budget: Annotated[float, pydantic.Field(gt=0)] | None = None
    seconds_end: Annotated[float, pydantic.Field(gt=0)] | None = None


def _name_of_folder(name: str) -> str:
    """Return `name` if it can name a folder (letters, digits, "_.-", no leading sign); ValueError otherwise."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name):
        allowed = "letters, digits, dots, hyphens and underscores, a letter or digit first"
        raise ValueError(f"{name!r} cannot name a run folder; take {allowed}")
    return name


class Spec(pydantic.BaseModel):
    """A sweep: its name, the values of each axis (one value or a list), how to measure, limits.

    `candidates` are settings that go together, such as a format with its engine, gradient and update; each is run at
    every combination of the axes. Without candidates the axes alone make the configurations.
    """

    model_config = STRICT

    name: Annotated[str, pydantic.AfterValidator(_name_of_folder)]
    description: str = ""
    axes: dict[str, tuple] = {}
    candidates: tuple[dict[str, Any], ...] = ()
    measure: Measure = Measure()
    limits: Limits = Limits()
    seed: Annotated[int, pydantic.Field(strict=True, ge=0, le=MOST_INTEGER)] = 0

    @pydantic.field_validator("axes", mode="before")
    @classmethod
    def _values(cls, axes: Any) -> Any:
        """Return axes as {axis: tuple of validated values}; a single value is a tuple of one.

        Called by pydantic before validation. ValueError for unknown axes, no values, invalid or repeated values.
        """
        if not isinstance(axes, dict):
            raise ValueError("axes must be a table of axis = value or axis = [values]")
        _require_known(axes)
        return {axis: _check_values(axis, values) for axis, values in axes.items()}

    @pydantic.field_validator("candidates", mode="before")
    @classmethod
    def _together(cls, candidates: Any) -> Any:
        """Return the candidates as a tuple of dicts {setting: validated value}.

        Called by pydantic before validation. ValueError if they are no list of dicts, or a setting or value is invalid.
        """
        if not isinstance(candidates, list | tuple) or not all(isinstance(entry, dict) for entry in candidates):
            raise ValueError("candidates must be tables of setting = value: write [[candidates]]")
        for candidate in candidates:
            _require_known(candidate)
        return tuple({name: _check_value(name, value) for name, value in entry.items()} for entry in candidates)

    @pydantic.model_validator(mode="after")
    def _apart(self) -> "Spec":
        """Return the spec itself; ValueError if a setting is both an axis and part of a candidate."""
        for candidate in self.candidates:
            if both := sorted(set(candidate) & set(self.axes)):
                raise ValueError(f"{both} is an axis and a setting of a candidate; keep one of the two")
        return self


def _require_known(axes: dict) -> None:
    """Raise ValueError, with the nearest known name, if a key of `axes` is not a setting."""
    for name in axes:
        if name not in settings.BY_NAME:
            raise ValueError(unknown_name("setting", name, list(settings.BY_NAME)))


def _check_values(axis: str, values: Any) -> tuple:
    """Return the validated values of an axis as a tuple; a single value may be given without a list.

    ValueError if there are none, one is invalid, or one occurs twice.
    """
    values = tuple(values) if isinstance(values, list | tuple) else (values,)
    if not values:
        raise ValueError(f"{axis} has no values; give one or leave it out")
    checked = [_check_value(axis, value) for value in values]
    if len(set(checked)) < len(checked):
        raise ValueError(f"{axis} names a value twice: {list(checked)}")
    return tuple(checked)


def _check_value(axis: str, value: Any) -> Any:
    """Return `value` as the configuration's field `axis` validates it; "natural" becomes None.

    ValueError with axis, value and reason if it is invalid.
    """
    try:
        return getattr(Configuration(**{axis: None if value == "natural" else value}), axis)
    except pydantic.ValidationError as error:
        text = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise SpecError(InvalidOption(text, axis, value)) from None


def _problems(error: pydantic.ValidationError) -> Iterator[InvalidOption]:
    """Yield what is wrong by pydantic's errors: the problems of settings, and "where: what" of the rest."""
    for entry in error.errors():
        own = entry.get("ctx", {}).get("error")
        if isinstance(own, SpecError):
            yield from own.problems
            continue
        text = entry["msg"].removeprefix("Value error, ")
        table, *below = map(str, entry["loc"]) if entry["loc"] else ("",)
        if entry["type"] == "extra_forbidden":
            models_by_table: dict[str, type[pydantic.BaseModel]] = {"measure": Measure, "limits": Limits}
            fields = (models_by_table.get(table, Spec) if below else Spec).model_fields
            text = unknown_name("key", [table, *below][-1], fields)
        elif below and table == "measure":
            yield InvalidOption(text, below[-1], entry["input"])
            continue
        place = ".".join(part for part in (table, *below) if part != "axes")  # the text names the setting
        yield InvalidOption(f"{place}: {text}" if place else text)


def validate_spec(given: dict) -> Spec:
    """Return the validated spec of a dict of settings; raises SpecError with one line for each error."""
    if not isinstance(given, dict):
        raise SpecError(f"A spec is a table of names and values; a {type(given).__name__} came.")
    try:
        return Spec(**given)
    except pydantic.ValidationError as error:
        raise SpecError(*_problems(error)) from None


def parse_spec(text: str) -> Spec:
    """Return the spec of a TOML text; raises SpecError if it is no TOML or no valid spec."""
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise SpecError(f"This is not TOML: {error}") from None
    return validate_spec(table)


def parse_spec_json(text: str) -> Spec:
    """Return the spec of a JSON text as `dump_spec` writes it; raises SpecError if it is no JSON or invalid."""
    try:
        table = parsed(text)
    except ValueError as error:
        raise SpecError(f"This is not JSON: {error}") from None
    return validate_spec(table)


def load_spec(path: str | Path) -> Spec:
    """Return the spec in a TOML file, or in a run's `spec.json` by its suffix.

    Relative paths of data files are resolved against the folder of `path`. Raises SpecError, with the path, if the file
    is missing, unreadable, not UTF-8 or invalid.
    """
    path = Path(path)
    read = parse_spec_json if path.suffix == ".json" else parse_spec
    try:
        spec = read(path.read_text(encoding="utf-8"))
    except SpecError as error:
        raise SpecError(f"{path}: {error}") from None
    except FileNotFoundError:
        raise SpecError(f"There is no spec {path}; give the path of a TOML file.{nearest_file(path)}") from None
    except OSError as error:
        raise SpecError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise SpecError(f"{path} is not text in UTF-8 ({error.reason} at byte {error.start}).") from None
    axes = {axis: tuple(_resolve_paths(path, axis, value) for value in values) for axis, values in spec.axes.items()}
    candidates = tuple(
        {name: _resolve_paths(path, name, candidate[name]) for name in candidate} for candidate in spec.candidates
    )
    return spec.model_copy(update={"axes": axes, "candidates": candidates})


def _resolve_paths(spec_file: Path, axis: str, value: Any) -> Any:
    """Return a file setting as an absolute path, resolved against the folder of `spec_file`; other values unchanged."""
    if axis not in FILES or not value:
        return value
    if "\0" in value:
        raise SpecError(f"{spec_file}: {axis}={value!r:.80} has a NUL character, which no path has.")
    return str((spec_file.parent / value).resolve())


def dump_spec(spec: Spec) -> str:
    """Return the spec as a JSON text with indentation, which `parse_spec_json` reads; a run folder keeps it."""
    return spec.model_dump_json(indent=1)


# The source files that a configuration's result depends on, so that edited code invalidates only records it
# computed.

TRIAL = frozenset({"workbench.sweeps.trial", "workbench.measure.child"})
"""What a child runs; all that is not looked up by a name of the configuration's follows from it."""

SEVERAL = frozenset({"workbench.cluster.training"})
"""What the child of a configuration with several trainers runs."""

ON_CUDA = frozenset({"workbench.training.device"})
"""What is imported where a training is made, and by a training on cuda alone."""


def work_of(configuration: Configuration, usual: str) -> str:
    """Return "module:function" that the trial's process calls: `usual`, or that of several trainers if it has them."""
    return usual if configuration.trainers == 1 else "workbench.cluster.training:answers"


def roots_of(configuration: Configuration) -> frozenset[str]:
    """Return the names of the modules that a configuration's result starts from.

    These are the trial's own module and the modules that register its kernels, model, data set, optimizer, formats and
    operators; with several trainers or "cuda" those of these too. Modules that they import are not listed.
    """
    modules = closure.registering_modules("kernel", _kernels(configuration))
    modules |= closure.registering_modules("model", [configuration.model]) | closure.registering_modules(
        "data set", [configuration.dataset]
    )
    modules |= closure.registering_modules("optimizer", [configuration.optimizer])
    modules |= closure.registering_modules("format", formats.names())  # each is asked whether an array is of it
    modules |= closure.modules_of("operator")  # which name each other, by attributes of their package
    modules |= SEVERAL if configuration.trainers > 1 else frozenset()
    return TRIAL | modules | (ON_CUDA if configuration.device == "cuda" else frozenset())


def kernels_of(configuration: Configuration) -> dict[str, str]:
    """Return {phase: kernel name} for the phases forward, loss, gradient and update of a step.

    A fused gradient has no own entry, it is part of the update. Models with several products have the kernels of X's.
    """
    setup = Setup(format=configuration.format, engine=configuration.engine, gradient=configuration.gradient)
    kind = "fused" if configuration.gradient == "fused" else "dense" if configuration.update == "standard" else "lazy"
    products = {"forward": setup.forward_rule.kernel, "loss": models.get(configuration.model).loss}
    gradient = {} if configuration.gradient == "fused" else {"gradient": setup.gradient_rule.kernel}
    return products | gradient | {"update": f"{configuration.optimizer}_{kind}"}


def _kernels(configuration: Configuration) -> Iterator[str]:
    """Yield the names of all kernels that the configuration's products, loss and update may call.

    On "cuda" also those of its library, cuBLAS or cuSPARSE; names may repeat.
    """
    setup = Setup(format=configuration.format, engine=configuration.engine, gradient=configuration.gradient)
    used = {method.kernel for method in METHODS if (method.x, method.y) == (configuration.format, "dense")}
    named = {setup.forward_rule.kernel, setup.gradient_rule.kernel, models.get(configuration.model).loss}
    yield from named | {kernel for kernel in used if ("." in kernel) == (configuration.engine != "ours")}
    yield f"{configuration.optimizer}_dense"  # one file has the lazy and fused one, too
    if configuration.device == "cuda":
        library = {"dense": "cublas.", "vendor": "cusparse."}.get(configuration.engine)
        yield from (name for name in kernels.names() if library and name.startswith(library))


def files_of(configuration: Configuration, code: closure.Code | None = None) -> list[Path]:
    """Return the source files that the configuration's result depends on, on "cuda" with its CUDA sources.

    `code` is the import graph to use, by default that of the installed package.
    """
    return (code or closure.installed_code()).files(
        roots_of(configuration), _excluded_modules(configuration), configuration.device == "cuda"
    )


def source_hash(configuration: Configuration, code: closure.Code | None = None) -> str:
    """Return the hash (hex text) of all source files that the configuration's result depends on.

    `code` is the import graph to use, by default that of the installed package.
    """
    parts = roots_of(configuration), _excluded_modules(configuration), configuration.device == "cuda"
    return code.digest(*parts) if code else source_digests.digest(*parts)


def _excluded_modules(configuration: Configuration) -> frozenset[str]:
    """Return the modules that do not count for a configuration's result: those of CUDA for "cpu", none for "cuda"."""
    return frozenset() if configuration.device == "cuda" else ON_CUDA
