"""A study: what a person chooses, and the sweep that answers it. Panel, notebook and command line choose alike.

Form fields, notebook parameters and the spec of the sweep all come from the choices; some follow the data set
(`suited`).

How to add a choice: give its setting a label in `workbench.settings`. Numbers are kept as the text that was typed, so
that an error can be reported with the text and nothing is lost.

>>> made = make_spec(complete_choices({"dataset": "uniform", "update": "lazy", "density": "1 %, 0.1", "width": 4}),
... "try")
>>> made.axes["density"], made.axes["width"], sorted({candidate["format"] for candidate in made.candidates})
((0.01, 0.1), (4,), ['csr', 'dense'])
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from kernels.registry import unknown_name
from workbench.formats import names as format_names
from workbench.ops.products import ENGINES
from workbench.settings import CHOICES, FLAG_WORDS, Setting
from workbench.sweeps import grid, run_folder
from workbench.sweeps.spec import (
    FILES,
    MEANINGS,
    Configuration,
    InvalidOption,
    Spec,
    SpecError,
    allowed_values,
    validate_spec,
)

BASELINE = {"format": "dense", "engine": "dense", "gradient": "dense", "update": "standard"}
"""Dense training step by step; it is always part of the sweep, as are epochs in one call if the model has them. What
sparse configurations are compared with is the best of all dense ones."""
DENSE_EXECUTIONS = ("step", "epoch")

UPDATES = {"lazy": ("fused", "row_sparse"), "exact": ("fused", "row_sparse"), "standard": ("dense", "row_sparse")}
"""Each update with the gradients it goes with, best first: one that is applied to its rows while it is summed, or one
that names them."""


def sparse_configurations(
    formats: Sequence[str], engines: Sequence[str], updates: Sequence[str], executions: Sequence[str] = ("step",)
) -> Iterator[dict[str, str]]:
    """Yield each valid sparse combination of formats, engines, updates and executions as a dict of settings.

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


SPARSE = {"format": sparse_formats, "engine": sparse_engines}
"""What is offered for sparse configurations of what the table allows."""


def options_of(choice: Setting) -> tuple[str, ...]:
    """Return the names that a study offers for a choice of a list, as they are typed."""
    if choice.type is bool:
        return tuple(FLAG_WORDS.values())
    if choice.name in SPARSE:
        return SPARSE[choice.name]()
    return (*filter(None, [choice.natural]), *allowed_values(choice))


def help_of(choice: Setting) -> str:
    """Return the help text of a choice: the meaning of each registered name if known, else the choice's own.

    That of models needs all of them imported, so it is not made before it is shown.
    """
    if choice.allowed in MEANINGS:
        return " ".join(f"{name}: {meaning}." for name, meaning in MEANINGS[choice.allowed]().items())
    return choice.help


def complete_choices(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return {name: normalized value} for every choice, defaults for those not in `given`.

    Raises SpecError for an unknown name.
    """
    for name in given:
        if name not in CHOICES:
            raise SpecError(unknown_name("setting", name, CHOICES))
    return {name: normalize_value(choice, given.get(name, choice.usual)) for name, choice in CHOICES.items()}


def normalize_value(choice: Setting, value: Any) -> tuple[str, ...] | str:
    """Return the value of a choice in stored form: a tuple of names if several may be chosen, else text.

    Numbers are joined by ", ", None becomes "".
    """
    if choice.widget == "many":
        return tuple(_parts(value))
    return ", ".join(_parts(value)) if choice.widget == "numbers" else "" if value is None else str(value).strip()


def _parts(value: Any) -> list[str]:
    """Return the items of a list or of comma-separated text as stripped strings; None gives [].

    None as an item becomes "natural"; brackets and quotes are removed.
    """
    if value is None:
        return []
    items = value if isinstance(value, list | tuple) else str(value).strip("[]() ").replace(";", ",").split(",")
    return ["natural" if item is None else text for item in items if (text := str(item).strip(" '\""))]


def parse_numbers(choice: Setting, text: str) -> list[float | int | None]:
    """Return the numbers in comma-separated text, None for "natural"; [None] if the text is empty.

    Raises SpecError for anything else.
    """
    return [_number(choice, part, text) for part in _parts(text)] or [None]


def _number(choice: Setting, part: str, text: str) -> float | int | None:
    """Return the number in a part of `text`, such as 0.05 for "5 %", an int if the choice needs one; None for natural.

    Raises SpecError otherwise.
    """
    if part == "natural":
        return None
    share = part.endswith("%")
    try:
        value = float(part.removesuffix("%").replace("_", "")) / (100 if share else 1)
    except ValueError:
        raise SpecError(InvalidOption(f"{part!r} is not a number. {choice.help}", choice.name, text)) from None
    if choice.type is not int:
        return value
    if share or value != int(value):
        raise SpecError(InvalidOption(f"{part!r} is not a whole number. {choice.help}", choice.name, text))
    return int(value)


def reduce_choices(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the choices reduced so that the sweep takes seconds: few values, rows and features, one short round."""
    few = {name: _parts(values[name]) or [""] for name in ("density", "width", "batch_rows", "threads")}
    two = dict.fromkeys((few["density"][0], few["density"][len(few["density"]) // 2]))
    firsts = {name: few[name][0] for name in ("width", "batch_rows", "threads")}
    most = {
        name: str(min(value or limit for value in (*parse_numbers(CHOICES[name], values[name]), limit)))
        for name, limit in SMALL.items()
    }
    short = {"epochs": "0", "trial_seconds": "0.05", "rounds": "1"}
    return {**values, **firsts, **most, "density": ", ".join(two), **short}


SMALL = {"rows": 2000, "features": 512}


def make_spec(values: Mapping[str, Any], name: str, description: str = "") -> Spec:
    """Return the sweep spec of complete choices, dense baseline included.

    Raises SpecError with all problems. `values` is {choice: value} for every choice, `name` that of the sweep.
    """
    wrong: list[InvalidOption] = []
    read = {}
    for choice in CHOICES.values():
        try:
            read[choice.name] = _parse_values(choice, values[choice.name])
        except SpecError as error:
            wrong += error.problems
    if wrong:
        raise SpecError(*wrong)
    sparse = sparse_configurations(read["format"], read["engine"], read["update"], read["execution"])
    dense = dense_configurations(read["storage"], read["execution"])
    axes = {name: read[name] for name, choice in CHOICES.items() if choice.role not in APART and read[name] != [None]}
    spec = validate_spec(
        {
            "name": name,
            "description": description,
            "axes": axes,
            "candidates": _without_unsupported([*sparse, *dense], axes),
            "measure": {name: read[name][0] for name, choice in CHOICES.items() if choice.role == "measure"},
        }
    )
    _refuse_empty(spec, read["format"])
    return spec


def choices_of_spec(spec: Spec) -> dict[str, Any] | None:
    """Return the choices {name: value} of which `make_spec` makes this spec; None if a study has none for it.

    >>> made = make_spec(complete_choices({"dataset": "uniform", "density": "1 %, 0.1", "width": 4}), "try")
    >>> choices_of_spec(made)["density"], choices_of_spec(made)["format"]
    ('0.01, 0.1', ('csr',))
    """
    sparse = [way for way in spec.candidates if way["format"] != BASELINE["format"]]
    dense = [way for way in spec.candidates if way["format"] == BASELINE["format"]]
    found: dict[str, Any] = {}
    for name, choice in CHOICES.items():
        if choice.role == "measure":
            values = [getattr(spec.measure, name)]
        elif choice.role == "line":
            ways, usual = (dense, "same") if name == "storage" else (sparse, "step")
            values = list(dict.fromkeys(way.get(name, usual) for way in ways))  # left out where it is the usual one
        else:
            values = list(spec.axes.get(name, [None]))
        words = FLAG_WORDS if choice.type is bool else {None: choice.natural}
        typed = [words.get(value, value) for value in values]
        found[name] = (
            ["" if value is None else value for value in typed] if choice.widget in ("many", "one") else values
        )
        if choice.widget not in ("many", "numbers") or values == [None]:
            found[name] = found[name][0]
    try:
        complete = complete_choices(found)
        made = make_spec(complete, spec.name)
    except SpecError:
        return None
    is_same = run_folder.result_identity(made) == run_folder.result_identity(spec)
    return complete if is_same else None


APART = ("line", "measure")
"""Roles of choices that are no axes: those of a line make candidates together, and those of measuring no settings."""


def _parse_values(choice: Setting, value: Any) -> list:
    """Return the values of one choice as a list of the setting's type: absolute paths, names or numbers.

    An empty choice gives [None]; raises SpecError for invalid values.
    """
    if choice.name in FILES:
        return [str(Path(value).expanduser().resolve()) if value else None]
    if choice.widget == "text":
        return [value or None]
    if choice.widget in ("one", "many"):
        known, given = options_of(choice), [value] if choice.widget == "one" else value
        if not given:
            raise SpecError(
                InvalidOption(f"none is chosen; expected one or more of: {', '.join(known)}.", choice.name, "")
            )
        for item in given:
            if item not in known:
                raise SpecError(InvalidOption(unknown_name("value", item, known), choice.name, item))
        words = {choice.natural: None} if choice.type is not bool else {word: flag for flag, word in FLAG_WORDS.items()}
        return [words.get(item, item) for item in given]
    values = parse_numbers(choice, value)
    if choice.is_single and (len(values) != 1 or values[0] is None):
        raise SpecError(InvalidOption(f"expected one number. {choice.help}", choice.name, value))
    return values


def _refuse_empty(spec: Spec, formats: Sequence[str]) -> None:
    """Raise SpecError if a format has no candidate, or if choices do not go together.

    Configurations that only train on the CPU may be chosen together with cuda; they are left out there, and the plan
    says so.
    """
    for format in formats:
        if not any(candidate["format"] == format for candidate in spec.candidates):
            text = "there is none with these kernels and updates; choose more of them."
            raise SpecError(InvalidOption(text, "format", format))
    devices = tuple(device for device in spec.axes["device"] if device == "cpu") or spec.axes["device"]
    whole = grid.expand_grid(spec.model_copy(update={"axes": spec.axes | {"device": devices}}))
    if whole.dropped:
        reason, count = whole.dropped.most_common(1)[0]
        part = f" for {count} of {count + len(whole.configurations)} configurations" if whole.configurations else ""
        raise SpecError(f"These choices do not go together{part}: {reason}")
