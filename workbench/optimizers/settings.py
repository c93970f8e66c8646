"""Settings of an updater as plain values for JSON, and their validation when read from an untrusted file."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from workbench.optimizers import schedules
from workbench.optimizers.contract import OptimizerError, known, number

if TYPE_CHECKING:
    from workbench.optimizers.updater import Updater


@final
@dataclass(frozen=True)
class Multiplier:
    """Factors of the learning rate and of the decays of one parameter.

    Parameters
    ----------
    learning_rate : float, default 1.0
        Factor of the learning rate.
    decay : float, default 1.0
        Factor of the decay options.

    Raises
    ------
    OptimizerError
        If a factor is not a number.

    Examples
    --------
    >>> Multiplier(learning_rate=2.0).decay
    1.0
    """

    learning_rate: float = 1.0
    decay: float = 1.0

    def __post_init__(self) -> None:
        for name, value in dataclasses.asdict(self).items():
            if math.isnan(number(value)):
                raise OptimizerError(f"A multiplier's {name} is {value!r:.80}; it is a number.")


def to_json(updater: "Updater") -> dict[str, Any]:
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


def from_json(settings: Any) -> dict[str, Any]:
    """Return the arguments of `Updater`, `name` included, from settings. Raises OptimizerError if they are invalid."""
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
    """Return the Multiplier of the parameter `name` from plain values. Raises OptimizerError."""
    if not isinstance(values, Mapping):
        raise OptimizerError(f"The multiplier of {name} is {values!r:.80}; it has a learning_rate and a decay.")
    known(
        f"The multiplier of {name} has no field", list(values), [field.name for field in dataclasses.fields(Multiplier)]
    )
    return Multiplier(**values)
