"""First values of parameters: each drawn from a stream of its own, fixed by its name and the seed, so order is free.

Written as a name, `"normal"`, or with its number, `("normal", 0.1)`; a number alone is a constant.

| name     | values                                                     | its number         |
|----------|------------------------------------------------------------|--------------------|
| zeros    | 0                                                          | none               |
| constant | the number                                                 | required           |
| uniform  | evenly between -scale and scale                            | scale, 0.01        |
| normal   | normally distributed around 0                              | deviation, 0.01    |
| xavier   | evenly within gain * sqrt(6 / (rows + width)), of matrices | gain, 1            |

>>> draw("uniform", "w", (2, 2), np.float32, seed=0).tolist() == draw(("uniform", 0.01), "w", (2, 2), "f4", 0).tolist()
True
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from kernels import aligned

Spec = str | float | tuple
_Draw = Callable[[np.random.Generator, tuple[int, ...], np.dtype, float], np.ndarray]


class ModuleError(ValueError):
    """Argument that does not fit the module, or a call before its turn; the message says what to do."""


def _constant(random: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype, value: float) -> np.ndarray:
    weights = aligned.empty(shape, dtype)
    weights[...] = value
    return weights


def _uniform(random: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype, scale: float) -> np.ndarray:
    weights = random.random(dtype=dtype, out=aligned.empty(shape, dtype))
    weights *= 2
    weights -= 1
    weights *= dtype.type(scale)
    return weights


def _normal(random: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype, deviation: float) -> np.ndarray:
    weights = random.standard_normal(dtype=dtype, out=aligned.empty(shape, dtype))
    weights *= dtype.type(deviation)
    return weights


def _xavier(random: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype, gain: float) -> np.ndarray:
    """Source: Glorot and Bengio 2010, the uniform form."""
    if len(shape) < 2:
        raise ModuleError(f"xavier is for matrices; the shape {shape} came. Use zeros, or uniform with a scale.")
    together = shape[0] + int(np.prod(shape[1:]))
    return _uniform(random, shape, dtype, gain * np.sqrt(6 / max(together, 1)))


KINDS: dict[str, tuple[_Draw, float | None]] = {
    "zeros": (_constant, 0.0),
    "constant": (_constant, None),
    "uniform": (_uniform, 0.01),
    "normal": (_normal, 0.01),
    "xavier": (_xavier, 1.0),
}
"""How each draws, and its number where none is given."""


def read(spec: Spec, name: str) -> tuple[_Draw, float]:
    """Initialiser that `spec` names, or `ModuleError`."""
    if isinstance(spec, int | float) and not isinstance(spec, bool):
        spec = ("constant", spec)
    parts = spec if isinstance(spec, list | tuple) else (spec,)
    if not parts or len(parts) > 2 or not isinstance(parts[0], str) or parts[0] not in KINDS:
        raise ModuleError(
            f"{name} starts as {spec!r}; write one of {', '.join(KINDS)}, or ('normal', 0.1), or a number."
        )
    draw, number = KINDS[parts[0]]
    if len(parts) == 2:
        if parts[0] == "zeros" or not isinstance(parts[1], int | float) or not np.isfinite(parts[1]):
            raise ModuleError(f"{name} starts as {spec!r}; zeros takes no number, the others a finite one.")
        number = float(parts[1])
    if number is None:
        raise ModuleError(f"{name} starts as {spec!r}; a constant needs its number: ('constant', 0.5).")
    return draw, number


def draw(spec: Spec, name: str, shape: tuple[int, ...], dtype: DTypeLike, seed: int) -> np.ndarray:
    """The array of the parameter called `name`, float32 or float64; the same for the same arguments, always."""
    kind, number = read(spec, name)
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or seed < 0:
        raise ModuleError(f"The seed is {seed!r}; it is a whole number from 0.")
    return kind(stream(name, int(seed)), shape, np.dtype(dtype), number)


def stream(name: str, seed: int) -> np.random.Generator:
    """The random numbers of that parameter: those of no other one, whatever else is drawn."""
    return np.random.default_rng([seed, *name.encode()])


def checked(specs: dict[str, Any]) -> None:
    """Refuse what cannot be read, before anything is drawn."""
    for name, spec in specs.items():
        read(spec, name)
