"""State of an updater as plain arrays by name, and its restoration.

`about` is JSON as uint8 bytes: the optimizer, `lazy`, and for each parameter its step, shape, dtype, format and, if
rows may be behind, the step `base`, the count of recorded steps and the catch-up strategy. Parameter p has an array
`p/<state>` for each state, or `p/<state>/values` and `p/<state>/indices` if it is row_sparse; if rows may be behind
also `p/last` and `p/record`.

A state may come from an untrusted file: everything that compiled code would follow is validated first.
"""

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kernels import aligned
from workbench import formats
from workbench.formats import RowSparse
from workbench.json_text import is_whole, parsed
from workbench.optimizers import deferred_updates, schedules
from workbench.optimizers.contract import Multiplier, Optimizer, OptimizerError, known
from workbench.optimizers.parameter import Parameter

if TYPE_CHECKING:
    from workbench.optimizers.updater import Updater

DTYPES = ("float32", "float64")
FORMATS = ("dense", "row_sparse")
MOST_AXES = 32


@dataclass(frozen=True)
class About:
    """Validated facts of a saved parameter; `way` is "" if its rows miss no steps."""

    step: int
    shape: tuple[int, ...]
    dtype: np.dtype
    format: str
    way: str
    base: int
    count: int


def state_dict(updater: "Updater") -> dict[str, np.ndarray]:
    """Return the state of an updater as copied arrays: "about" (JSON text, uint8) and "<parameter>/<part>".

    See `Updater.state_dict`.
    """
    parameters = updater.parameters
    about = {
        "optimizer": updater.optimizer.name,
        "lazy": updater.lazy,
        "parameters": {name: _about(parameter) for name, parameter in parameters.items()},
    }
    arrays = {"about": np.frombuffer(json.dumps(about).encode(), np.uint8).copy()}
    for name, parameter in parameters.items():
        arrays |= {f"{name}/{key}": array.copy() for key, array in _arrays(parameter).items()}
    return arrays


def _about(parameter: Parameter) -> dict[str, Any]:
    """Return the facts of a parameter for the JSON text: step, shape, dtype, format and, for "exact", missed steps."""
    about = {"step": parameter.step, "shape": parameter.shape, "dtype": parameter.dtype.name}
    about["format"] = parameter.format
    steps = parameter.missed
    return about | ({"base": steps.base, "count": steps.count, "way": steps.way} if steps else {})


def _arrays(parameter: Parameter) -> dict[str, np.ndarray]:
    """Return states, last steps and recorded steps of a parameter by name, such as "history" or "last"; not copied."""
    arrays: dict[str, np.ndarray] = {}
    for name, state in zip(parameter.optimizer.states, parameter.states, strict=True):
        if isinstance(state, np.ndarray):
            arrays[name] = state
        else:
            arrays |= {f"{name}/values": state.values, f"{name}/indices": state.indices}
    if parameter.missed is not None:
        arrays |= {"last": parameter.missed.last, "record": parameter.missed.record}
    return arrays


def read_state(updater: "Updater", arrays: Mapping[str, Any]) -> dict[str, Parameter]:
    """Validate a state and return its parameters over copied arrays, for `Updater.take_state`.

    The updater is unchanged. Raises OptimizerError that names what does not fit the optimizer or is inconsistent.
    """
    abouts = _read_about(updater, arrays)
    types = {name: _types_of_arrays(updater.optimizer, one) for name, one in abouts.items()}
    expected = {f"{name}/{key}": like for name, arrays_of in types.items() for key, like in arrays_of.items()}
    unknown, missing = sorted(set(arrays) - set(expected) - {"about"}), sorted(set(expected) - set(arrays))
    if unknown or missing:
        raise OptimizerError(f"The state has unknown arrays {unknown} and lacks {missing}.")
    for key, (dtype, shape) in expected.items():
        _check(key, arrays[key], dtype, shape)
    return {name: _parameter(updater, name, about, arrays) for name, about in abouts.items()}


# What the text says


def _read_about(updater: "Updater", arrays: Mapping[str, Any]) -> dict[str, About]:
    """Return the validated facts of the array `about` by parameter. Raises OptimizerError if it is invalid."""
    if "about" not in arrays:
        raise OptimizerError(f"This is no state of an updater: it has no array 'about'; it has {sorted(arrays)}.")
    unreadable = OptimizerError("This is no state of an updater: its array 'about' cannot be read.")
    text = arrays["about"]
    if not isinstance(text, np.ndarray) or text.dtype != np.uint8:
        raise unreadable
    try:
        about = parsed(text.tobytes())
        said, parameters = {key: about[key] for key in ("optimizer", "lazy")}, dict(about["parameters"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise unreadable from error
    for key, here in (("optimizer", updater.optimizer.name), ("lazy", updater.lazy)):
        if said[key] != here:
            raise OptimizerError(f"The state was saved with {key} {said[key]}; this updater has {here}.")
    return {name: _validate_facts(name, one, updater) for name, one in parameters.items()}


def _validate_facts(name: str, about: Any, updater: "Updater") -> About:
    """Return the validated facts of the parameter `name`. Raises OptimizerError that says what is expected."""
    own = updater.way_of(name)
    unknown = dict.fromkeys(("step", "shape", "dtype", "format", "way", "base", "count"))
    saved = {"base": 0, "count": 0, "way": own} | about if isinstance(about, dict) else {}
    fields: dict[str, Any] = unknown | saved
    shape, way = fields["shape"], fields["way"]
    step, base, count = fields["step"], fields["base"], fields["count"]
    lengths = shape if isinstance(shape, list) and len(shape) <= MOST_AXES else [None]
    known = ["", *deferred_updates.catch_up_strategies(updater.optimizer.rule)] if updater.lazy == "exact" else [""]
    before = step - count if is_whole(step) and is_whole(count) else 0
    for key, is_right, allowed in (
        ("step", is_whole(step), "a whole number from 0"),
        ("shape", all(is_whole(n) for n in lengths) and math.prod(lengths) <= 2**62, "a list of lengths"),
        ("dtype", fields.get("dtype") in DTYPES, " or ".join(DTYPES)),
        ("format", fields.get("format") in FORMATS, " or ".join(FORMATS)),
        ("shape", fields.get("format") == "dense" or bool(shape), "one or more lengths where it is row_sparse"),
        ("way", way in known, ", ".join(map(repr, known))),
        (
            "count",
            is_whole(count, 0, deferred_updates.STEPS - 1),
            f"below {deferred_updates.STEPS}, the steps that are kept",
        ),
        ("base", is_whole(base) and (not way or base == before), f"{before}, the step less count"),
    ):
        if not is_right:
            raise OptimizerError(
                f"The state says of {name} that {key} is {fields.get(key)!r:.80}; it should be {allowed}."
            )
    if count and own and way != own:
        raise OptimizerError(
            f"The state says of {name} that rows catch up in the way {way!r}; under these options it is {own!r}. Give "
            "the updater the options that the state was saved with."
        )
    return About(step, tuple(shape), np.dtype(fields["dtype"]), fields["format"], way, base, count)


# The arrays


def _types_of_arrays(optimizer: Optimizer, about: About) -> dict[str, tuple[np.dtype, tuple[int | None, ...]]]:
    """Return {name: (dtype, shape)} of every array that a parameter needs; a length None stands for any."""
    long, shape = np.dtype(np.int64), about.shape[:1] if optimizer.states_by_row else about.shape
    arrays: dict[str, tuple[np.dtype, tuple[int | None, ...]]] = {}
    for state in optimizer.states:
        if about.format == "dense":
            arrays[state] = about.dtype, shape
        else:
            arrays |= {f"{state}/values": (about.dtype, (None, *shape[1:])), f"{state}/indices": (long, (None,))}
    if about.way:
        arrays["last"] = long, (about.shape[0] if about.shape else 1,)
        numbers = deferred_updates.numbers_kept(optimizer.rule, about.way)
        steps = None if about.way == "last_step" else about.count
        arrays["record"] = about.dtype if about.way == "step_by_step" else np.dtype(np.float64), (steps, numbers)
    return arrays


def _check(key: str, array: Any, dtype: np.dtype, shape: tuple[int | None, ...]) -> None:
    """Raise OptimizerError unless `array` is an ndarray of this dtype and shape (None: any length).

    `key` is its name in the message.
    """
    if not isinstance(array, np.ndarray):
        raise OptimizerError(f"{key} is a {type(array).__name__}; it should be a dense array, {dtype} {shape}.")
    fits = len(array.shape) == len(shape) and all(n in (None, m) for n, m in zip(shape, array.shape, strict=True))
    if array.dtype != dtype or not fits:
        known = tuple("any" if length is None else length for length in shape)
        raise OptimizerError(f"{key} is {array.dtype} {array.shape}; it should be {dtype} {known}.")


def _parameter(updater: "Updater", name: str, about: About, arrays: Mapping[str, np.ndarray]) -> Parameter:
    """Build the `Parameter` called `name` from copies of its saved arrays, which fit `about` by `_check`.

    Raises OptimizerError if their contents are inconsistent.
    """
    own = {key: aligned.copy(arrays[f"{name}/{key}"]) for key in _types_of_arrays(updater.optimizer, about)}
    states = _states(updater.optimizer, name, about, own)
    way = about.way
    parameter = Parameter(updater.optimizer, updater.lazy, way, about.shape, about.dtype, about.format, states)
    parameter.step = about.step
    if parameter.missed is not None:
        _check_last(name, about, own, states)
        parameter.missed.restore(own["last"], about.base, about.count, own["record"])
    return parameter


def _states(
    optimizer: Optimizer, name: str, about: About, own: Mapping[str, np.ndarray]
) -> list[np.ndarray | RowSparse]:
    """Return the states of the parameter `name` from copies of its arrays, in the optimizer's order.

    Raises OptimizerError for negative sums of squares or rows that differ.
    """
    states: list[np.ndarray | RowSparse] = []
    shape = about.shape[:1] if optimizer.states_by_row else about.shape
    for state in optimizer.states:
        values = own[state] if about.format == "dense" else own[f"{state}/values"]
        if state in optimizer.rule.squares and (values < 0).any():
            raise OptimizerError(f"{name}/{state} has numbers below 0; it is a sum of squares.")
        if about.format == "row_sparse":
            indices = own[f"{state}/indices"]
            states.append(_rows(f"{name}/{state}", values, indices, shape))
            if not np.array_equal(indices, own[f"{optimizer.states[0]}/indices"]):
                raise OptimizerError(f"{name}/{state} holds other rows than {name}/{optimizer.states[0]}.")
        else:
            states.append(values)
    return states


def _rows(key: str, values: np.ndarray, indices: np.ndarray, shape: tuple[int, ...]) -> RowSparse:
    """Return a RowSparse state, called `key` in messages, of values [stored, ...], indices [stored] and shape.

    Raises OptimizerError if its components are invalid.
    """
    try:
        return RowSparse(values, indices, shape)
    except formats.FormatError as error:
        raise OptimizerError(f"{key}: {error}") from None


def _check_last(name: str, about: About, own: Mapping[str, np.ndarray], states: list) -> None:
    """Raise OptimizerError for last steps, own["last"], outside base to step, or a "last_step" record of several steps.

    `about` are the facts of the parameter `name`, `own` its arrays, `states` its states, which give the stored rows.
    """
    last = own["last"]
    if last.size and not 0 <= last.min() <= last.max() <= about.step:
        raise OptimizerError(
            f"{name}/last goes from {last.min()} to {last.max()}; the last step of a row is from 0 to {about.step}."
        )
    kept = last if about.format == "dense" else last[states[0].indices] if states else last[:0]
    if kept.size and kept.min() < about.base:
        raise OptimizerError(f"{name}/last has {kept.min()}; what rows have missed is known from step {about.base} on.")
    if about.way == "last_step" and not int(about.count > 0) <= len(own["record"]) <= 1:
        raise OptimizerError(f"{name}/record has {len(own['record'])} steps; it has the last one of {about.count}.")


# Settings of an updater as plain values for JSON, and their validation when read from an untrusted file.


def settings_to_json(updater: "Updater") -> dict[str, Any]:
    """Return the settings of an updater as plain values; see `Updater.settings`."""
    numbers = {key: None if math.isinf(value) else value for key, value in updater.options.items()}
    return {
        "name": updater.optimizer.name,
        "lazy": updater.lazy,
        "clip_global_norm": updater.clip_global_norm,
        "schedule": schedules.to_json(updater.schedule),
        "multipliers": {name: dataclasses.asdict(multiplier) for name, multiplier in updater.multipliers.items()},
        **numbers,
    }


def settings_from_json(settings: Any) -> dict[str, Any]:
    """Return the arguments of `Updater`, with `name`, from plain settings. Raises OptimizerError if invalid."""
    if not isinstance(settings, Mapping) or not all(isinstance(key, str) for key in settings):
        raise OptimizerError(f"Settings of an updater are an object with its name and options; {settings!r:.80} came.")
    options = {"schedule": {"kind": "constant"}, "multipliers": {}, **settings}
    if not isinstance(options.get("name"), str):
        raise OptimizerError(f"The settings of an updater name it; their name is {options.get('name')!r:.80}.")
    if not isinstance(options["multipliers"], Mapping):
        raise OptimizerError(f"The multipliers are {options['multipliers']!r:.80}; they are objects by parameter.")
    options["schedule"] = schedules.from_json(options["schedule"])
    options["multipliers"] = {name: _multiplier(name, values) for name, values in options["multipliers"].items()}
    return options


def _multiplier(name: str, values: Any) -> Multiplier:
    """Return the `Multiplier` of the parameter `name` from a mapping of its fields, as read from JSON.

    Raises OptimizerError if it is no mapping or has unknown fields.
    """
    if not isinstance(values, Mapping):
        raise OptimizerError(f"The multiplier of {name} is {values!r:.80}; it has a learning_rate and a decay.")
    known(f"field of the multiplier of {name}", list(values), [field.name for field in dataclasses.fields(Multiplier)])
    return Multiplier(**values)
