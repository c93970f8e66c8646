"""A study: what a person chooses, and the sweep that answers it. Panel, notebook and command line choose alike.

Form fields, notebook parameters and the spec of the sweep all come from the choices; some follow the data set
(`suited`).

How to add a choice: give its setting a `Control` in `workbench.settings`. Numbers are kept as the text that was typed,
so that an error can be reported with the text and nothing is lost.

>>> made = make_spec(complete_choices({"dataset": "uniform", "updates": "lazy", "densities": "1 %, 0.1",
... "widths": 4}), "try")
>>> made.axes["density"], made.axes["width"], sorted({candidate["format"] for candidate in made.candidates})
((0.01, 0.1), (4,), ['csr', 'dense'])
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from kernels.registry import unknown_name
from workbench.formats import names as format_names
from workbench.ops.products import ENGINES
from workbench.settings import MEASURE, SETTINGS, Control, Setting
from workbench.sweeps import grid
from workbench.sweeps.spec import FILES, MEANINGS, Configuration, Spec, SpecError, allowed_values, validate_spec

BASELINE = {"format": "dense", "engine": "dense", "gradient": "dense", "update": "standard"}
"""Dense training step by step; it is always part of the sweep, as are epochs in one call if the model has them. What
sparse configurations are compared with is the best of all dense ones."""
DENSE_EXECUTIONS = ("step", "epoch")

UPDATES = {"lazy": ("fused", "row_sparse"), "exact": ("fused", "row_sparse"), "standard": ("dense", "row_sparse")}
"""Each update with the gradients it goes with, best first: one that is applied to its rows while it is summed, or one
that names them."""


class ChoiceError(ValueError):
    """Choices that cannot be measured; the message has one line for each thing that is wrong."""


@dataclass(frozen=True)
class Choice:
    """One choice. `kind` is one or many (of `options`), text, number, or numbers: one or several between commas.

    `axis` is its axis of the sweep; `whole` numbers only; `main` choices are shown at once, the others on demand.
    """

    name: str
    label: str
    describe: Callable[[], str]
    """Returns its help text; that of models needs all of them imported, so it is not made before it is shown."""
    kind: str
    default: Any
    axis: str = ""
    options: Callable[[], Sequence[str]] = tuple
    whole: bool = False
    main: bool = True
    values: Mapping[str, Any] = field(default_factory=dict)
    """What words stand for; others stand for themselves."""

    @property
    def help(self) -> str:
        """Help text."""
        return self.describe()


def sparse_configurations(
    formats: Sequence[str], engines: Sequence[str], updates: Sequence[str], executions: Sequence[str] = ("step",)
) -> Iterator[dict[str, str]]:
    """Yield each valid sparse combination of formats, engines, updates and launches as a dict of settings.

    Each has the first gradient that its update allows.
    """
    for format, engine, update, execution in product(formats, engines, updates, executions):
        shared = {"format": format, "engine": engine, "update": update}
        shared |= {"execution": execution} if execution != "step" else {}
        named = [gradient for gradient in UPDATES[update] if (execution, gradient) != ("epoch", "fused")]
        ways = [{**shared, "gradient": gradient} for gradient in named]
        yield from [way for way in ways if not grid.why_dropped(Configuration(dataset="uniform", **way))][:1]


def dense_configurations(storages: Sequence[str], executions: Sequence[str] = ()) -> list[dict[str, str]]:
    """Return the dense candidates as dicts of settings: step by step and epochs in one call, for each storage.

    The storages are the batches' own format and `storages`; "cuda_graph" in `executions` adds steps in one CUDA graph.
    """
    kept = [{"storage": storage} if storage != "same" else {} for storage in dict.fromkeys(("same", *storages))]
    launched = [{"execution": execution} if execution != "step" else {} for execution in DENSE_EXECUTIONS]
    graph = [{**BASELINE, "execution": "cuda_graph"}] if "cuda_graph" in executions else []
    return [{**BASELINE, **storage, **execution} for storage, execution in product(kept, launched)] + graph


def _without_unsupported(ways: Sequence[dict[str, str]], axes: Mapping[str, Sequence]) -> list[dict[str, str]]:
    """Return the candidates that are valid with at least one model and device of `axes`.

    Unsupported ones stay, to be reported, except epochs in one call that are also offered step by step, and other
    storage of dense data.
    """
    places = [
        {"model": model, "device": device}
        for model, device in product(
            axes.get("model", (Configuration().model,)), axes.get("device", (Configuration().device,))
        )
    ]
    is_stepwise = any("execution" not in way for way in ways if way["format"] != BASELINE["format"])

    def is_needed(way: Mapping[str, str]) -> bool:
        """Return whether an unsupported candidate stays: the baseline, or sparse and not offered step by step too."""
        if way["format"] == BASELINE["format"]:
            return way == BASELINE
        return not (way.get("execution") == "epoch" and is_stepwise)

    return [
        way
        for way in ways
        if is_needed(way) or not all(grid.why_not_together(Configuration(**place, **way)) for place in places)
    ]


def sparse_formats() -> tuple[str, ...]:
    """Return the names of the sparse formats that have at least one valid candidate."""
    formats = [name for name in format_names() if name != BASELINE["format"]]
    return tuple(
        dict.fromkeys(
            candidate["format"] for candidate in sparse_configurations(formats, sparse_engines(), list(UPDATES))
        )
    )


def sparse_engines() -> tuple[str, ...]:
    """Return the names of the backends other than that of the dense baseline."""
    return tuple(name for name in ENGINES if name != BASELINE["engine"])


SPARSE = {"formats": sparse_formats, "engines": sparse_engines}
"""What is offered for sparse configurations of what the table allows."""


FLAG = {"no": False, "yes": True}
"""How a setting that is on or off is chosen."""


def _list_options(setting: Setting, control: Control) -> Callable[[], Sequence[str]]:
    """Return a function without arguments that returns the option names of a setting's control."""
    if setting.type is bool:
        return lambda: tuple(FLAG)
    words = (control.natural,) if control.natural else ()
    return SPARSE.get(control.name, lambda: (*words, *allowed_values(setting)))


def _help(setting: Setting) -> str:
    """Return the help text of a setting: the meaning of each registered option if known, else its own meaning."""
    if setting.allowed in MEANINGS:
        return " ".join(f"{name}: {meaning}." for name, meaning in MEANINGS[setting.allowed]().items())
    return f"{setting.meaning[:1].upper()}{setting.meaning[1:]}."


def _choice(setting: Setting, control: Control) -> Choice:
    """Return the choice of a setting; settings of role "line" have no axis, since they form candidates."""
    return Choice(
        control.name,
        control.label,
        lambda: control.help or _help(setting),
        control.kind,
        control.default,
        axis=setting.name if setting.role != "line" else "",
        options=_list_options(setting, control),
        whole=setting.type is int,
        main=control.main,
        values=FLAG if setting.type is bool else {control.natural: None},
    )


def _choice_of_measure(control: Control) -> Choice:
    """Return the choice for a control of the measurement, shown on demand; "rounds" takes whole numbers only."""
    whole = control.name == "rounds"
    return Choice(
        control.name, control.label, lambda: control.help, control.kind, control.default, whole=whole, main=False
    )


CHOICES = (
    *(_choice(setting, setting.control) for setting in SETTINGS if setting.control),
    *(_choice_of_measure(control) for control in MEASURE),
)
BY_NAME = {choice.name: choice for choice in CHOICES}


def complete_choices(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return {name: normalized value} for every choice, defaults for those not in `given`.

    Raises ChoiceError for an unknown name.
    """
    for name in given:
        if name not in BY_NAME:
            raise ChoiceError(unknown_name("choice", name, list(BY_NAME)))
    return {choice.name: normalize_value(choice, given.get(choice.name, choice.default)) for choice in CHOICES}


def normalize_value(choice: Choice, value: Any) -> tuple[str, ...] | str:
    """Return the value of a choice in stored form: a tuple of names for kind "many", else text.

    Numbers are joined by ", ", None becomes "".
    """
    if choice.kind == "many":
        return tuple(_parts(value))
    return ", ".join(_parts(value)) if choice.kind == "numbers" else "" if value is None else str(value).strip()


def _parts(value: Any) -> list[str]:
    """Return the items of a list or of comma-separated text as stripped strings; None gives [].

    None as an item becomes "natural"; brackets and quotes are removed.
    """
    if value is None:
        return []
    items = value if isinstance(value, list | tuple) else str(value).strip("[]() ").replace(";", ",").split(",")
    return ["natural" if item is None else text for item in items if (text := str(item).strip(" '\""))]


def parse_numbers(choice: Choice, text: str) -> list[float | int | None]:
    """Return the numbers in comma-separated text, None for "natural"; [None] if the text is empty.

    Raises ChoiceError for anything else.
    """
    return [_number(choice, part) for part in _parts(text)] or [None]


def _number(choice: Choice, part: str) -> float | int | None:
    """Return the number in a text, such as 0.05 for "5 %"; None for "natural"; an int if the choice needs one.

    Raises ChoiceError otherwise.
    """
    if part == "natural":
        return None
    share = part.endswith("%")
    try:
        value = float(part.removesuffix("%").replace("_", ""))
    except ValueError:
        raise ChoiceError(f"{choice.label}: {part!r} is not a number. {choice.help}") from None
    if not choice.whole:
        return value / 100 if share else value
    if share or value != int(value):
        raise ChoiceError(f"{choice.label}: {part!r} is not a whole number. {choice.help}")
    return int(value)


def reduce_choices(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the choices reduced so that the sweep takes seconds: few values, rows and features, one short round."""
    few = {name: _parts(values[name]) or [""] for name in ("densities", "widths", "batch_rows", "threads")}
    two = dict.fromkeys((few["densities"][0], few["densities"][len(few["densities"]) // 2]))
    firsts = {name: few[name][0] for name in ("widths", "batch_rows", "threads")}
    most = {
        name: str(min(value or limit for value in (*parse_numbers(BY_NAME[name], values[name]), limit)))
        for name, limit in SMALL.items()
    }
    return {**values, **firsts, **most, "densities": ", ".join(two), "epochs": "0", "seconds": "0.05", "rounds": "1"}


SMALL = {"rows": 2000, "features": 512}


def make_spec(values: Mapping[str, Any], name: str, description: str = "") -> Spec:
    """Return the sweep spec of complete choices, dense baseline included.

    Raises ChoiceError with all problems, one per line. `values` is {choice: value} for every choice, `name` that of the
    sweep.
    """
    wrong, read = [], {}
    for choice in CHOICES:
        try:
            read[choice.name] = _parse_values(choice, values[choice.name])
        except ChoiceError as error:
            wrong.append(str(error))
    if wrong:
        raise ChoiceError("\n".join(wrong))
    sparse = sparse_configurations(read["formats"], read["engines"], read["updates"], read["executions"])
    axes = {choice.axis: read[choice.name] for choice in CHOICES if choice.axis and read[choice.name] != [None]}
    settings = {
        "name": name,
        "description": description,
        "axes": axes,
        "candidates": _without_unsupported(
            [*sparse, *dense_configurations(read["storages"], read["executions"])], axes
        ),
        "measure": {"seconds_total": read["seconds"][0], "rounds": read["rounds"][0]},
    }
    try:
        spec = validate_spec(settings)
    except SpecError as error:
        text = str(error).replace("measure.seconds_total:", "trial_seconds:").replace("measure.rounds:", "rounds:")
        raise ChoiceError(text) from None
    _refuse_empty(spec, read["formats"])
    return spec


def _parse_values(choice: Choice, value: Any) -> list:
    """Return the values of one choice as a list of the setting's type: absolute paths, names or numbers.

    An empty choice gives [None]; raises ChoiceError for invalid values.
    """
    if choice.name in FILES:
        return [str(Path(value).expanduser().resolve()) if value else None]
    if choice.kind == "text":
        return [value or None]
    if choice.kind == "one":
        return [choice.values.get(value, _list_known(choice, value))]
    if choice.kind == "many":
        if not value:
            raise ChoiceError(f"{choice.label}: none is chosen; choose one or more of {', '.join(choice.options())}.")
        return [_list_known(choice, item) for item in value]
    values = parse_numbers(choice, value)
    if choice.kind == "number" and (len(values) != 1 or values[0] is None):
        raise ChoiceError(f"{choice.label}: {value!r} is not one number. {choice.help}")
    return values


def _list_known(choice: Choice, value: str) -> str:
    """Return `value` if it is one of the choice's options; ChoiceError, with the nearest option, if not."""
    if value not in choice.options():
        raise ChoiceError(f"{choice.label}: {unknown_name(choice.name, value, choice.options())}")
    return value


def _refuse_empty(spec: Spec, formats: Sequence[str]) -> None:
    """Raise ChoiceError if a format has no candidate, or if choices do not go together.

    Configurations that only train on the CPU may be chosen together with cuda; they are left out there, and the plan
    says so.
    """
    for format in formats:
        if not any(candidate["format"] == format for candidate in spec.candidates):
            raise ChoiceError(
                f"Sparse formats: there is no {format} with these kernels and updates; choose more of them."
            )
    devices = tuple(device for device in spec.axes["device"] if device == "cpu") or spec.axes["device"]
    whole = grid.expand_grid(spec.model_copy(update={"axes": spec.axes | {"device": devices}}))
    if whole.dropped:
        reason, count = whole.dropped.most_common(1)[0]
        part = f" for {count} of {count + len(whole.configurations)} configurations" if whole.configurations else ""
        raise ChoiceError(f"These choices do not go together{part}: {reason}")
