"""The state of an updater as plain arrays by name, and back.

`about` is JSON as bytes, uint8: the optimizer, `lazy`, and of each parameter its step, shape, type, format, and where
rows have missed something, since which step and how many are recorded. Parameter p has an array for each of its states,
`p/<state>`, or of row_sparse ones `p/<state>/values` and `p/<state>/indices`; where rows have missed something also
`p/last` and `p/record`.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench import formats
from workbench.optimizers.contract import OptimizerError
from workbench.optimizers.parameter import Parameter

if TYPE_CHECKING:
    from workbench.optimizers.updater import Updater


def state_dict(updater: "Updater") -> dict[str, np.ndarray]:
    """See `Updater.state_dict`."""
    parameters = updater.parameters
    about = {"optimizer": updater.optimizer.name, "lazy": updater.lazy}
    about["parameters"] = {name: _about(parameter) for name, parameter in parameters.items()}
    arrays = {"about": np.frombuffer(json.dumps(about).encode(), np.uint8).copy()}
    for name, parameter in parameters.items():
        arrays |= {f"{name}/{key}": array.copy() for key, array in _arrays(parameter).items()}
    return arrays


def _about(parameter: Parameter) -> dict[str, Any]:
    about = {"step": parameter.step, "shape": parameter.shape, "dtype": parameter.dtype.name}
    missed = parameter.missed
    return about | {"format": parameter.format} | ({"base": missed.base, "count": missed.count} if missed else {})


def _arrays(parameter: Parameter) -> dict[str, np.ndarray]:
    arrays = {}
    for name, state in zip(parameter.optimizer.states, parameter.states, strict=True):
        if parameter.format == "dense":
            arrays[name] = state
        else:
            arrays |= {f"{name}/values": state.values, f"{name}/indices": state.indices}
    if parameter.missed is not None:
        arrays |= {"last": parameter.missed.last, "record": parameter.missed.record}
    return arrays


def load_state_dict(updater: "Updater", arrays: Mapping[str, np.ndarray]) -> None:
    """See `Updater.load_state_dict`."""
    about = _read_about(arrays)
    for key, here in (("optimizer", updater.optimizer.name), ("lazy", updater.lazy)):
        if about[key] != here:
            raise OptimizerError(f"The state was saved with {key} {about[key]}; this updater has {here}.")
    parameters = {
        name: updater.new_parameter(name, tuple(one["shape"]), np.dtype(one["dtype"]), one["format"])
        for name, one in about["parameters"].items()
    }
    wanted = {f"{name}/{key}": like for name, one in parameters.items() for key, like in _arrays(one).items()}
    unknown, missing = sorted(set(arrays) - set(wanted) - {"about"}), sorted(set(wanted) - set(arrays))
    if unknown or missing:
        raise OptimizerError(f"The state has unknown arrays {unknown} and lacks {missing}.")
    for name, parameter in parameters.items():
        _fill(name, parameter, about["parameters"][name], arrays)
    updater.parameters = parameters


def _read_about(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    if "about" not in arrays:
        raise OptimizerError(f"This is no state of an updater: it has no array 'about'; it has {sorted(arrays)}.")
    try:
        about = json.loads(arrays["about"].tobytes())
        _ = about["optimizer"], about["lazy"]
        for parameter in about["parameters"].values():
            _ = parameter["step"], parameter["shape"], parameter["dtype"], parameter["format"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise OptimizerError("This is no state of an updater: its array 'about' cannot be read.") from error
    return about


def _fill(name: str, parameter: Parameter, about: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Give a new parameter what was saved; arrays of another shape or type are refused."""
    own = {key: arrays[f"{name}/{key}"] for key in _arrays(parameter)}
    rows = {"record": about.get("count", 0)} if parameter.missed and parameter.missed.way != "settle" else {}
    for key, like in _arrays(parameter).items():
        shape = like.shape
        if key == "record" or key.endswith(("/values", "/indices")):
            shape = (rows.get(key, len(own[key])), *shape[1:])
        _check(f"{name}/{key}", own[key], like.dtype, shape)
    parameter.step = about["step"]
    for number, state in enumerate(parameter.optimizer.states):
        if parameter.format == "dense":
            parameter.states[number] = own[state].copy()
        else:
            values, indices = own[f"{state}/values"].copy(), own[f"{state}/indices"].copy()
            parameter.states[number] = formats.RowSparse(values, indices, parameter.states[number].shape)
    if parameter.missed is not None:
        parameter.missed.restore(own["last"], about.get("base", 0), about.get("count", 0), own["record"])


def _check(key: str, came: np.ndarray, dtype: np.dtype, shape: tuple[int, ...]) -> None:
    if came.dtype != dtype or came.shape != shape:
        raise OptimizerError(f"{key} is {came.dtype} {came.shape}; it should be {dtype} {shape}.")
