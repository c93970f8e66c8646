"""Initial values of parameters, each drawn from an independent random stream given by its name and the seed.

Written as a name, `"normal"`, or with its number, `("normal", 0.1)`; a number alone is a constant.

| name     | values                                                     | its number               |
|----------|------------------------------------------------------------|--------------------------|
| zeros    | 0                                                          | none                     |
| constant | the number                                                 | required                 |
| uniform  | uniform in [-scale, scale)                                 | scale, 0.01              |
| normal   | normal with mean 0                                         | standard deviation, 0.01 |
| xavier   | uniform within gain * sqrt(6 / (rows + width)), matrices   | gain, 1                  |

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
    """An argument does not fit the module, or a call comes too early; the message says what to do."""


def _constant(random: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype, value: float) -> np.ndarray:
    """Return a new aligned array of this shape and dtype filled with `value`; `random` is not used."""
    weights = aligned.empty(shape, dtype)
    weights[...] = value
    return weights


def _uniform(random: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype, scale: float) -> np.ndarray:
    """Return a new aligned array of uniform values in [-scale, scale)."""
    weights = random.random(dtype=dtype, out=aligned.empty(shape, dtype))
    weights *= 2
    weights -= 1
    weights *= dtype.type(scale)
    return weights


def _normal(random: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype, deviation: float) -> np.ndarray:
    """Return a new aligned array of normal values with mean 0 and this standard deviation."""
    weights = random.standard_normal(dtype=dtype, out=aligned.empty(shape, dtype))
    weights *= dtype.type(deviation)
    return weights


def _xavier(random: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype, gain: float) -> np.ndarray:
    """Return uniform values within gain * sqrt(6 / (rows + width)) (Glorot and Bengio 2010).

    Raises ModuleError unless there are at least two dimensions.
    """
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
    """Return (drawing function, its number) of an initialiser such as "normal", ("normal", 0.1) or 0.5.

    Raises ModuleError, naming the parameter `name`, if it is invalid.
    """
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
    """Return the initial array of the parameter `name`, float32 or float64; the same for the same arguments.

    Raises ModuleError for an invalid `spec` or seed.
    """
    kind, number = read(spec, name)
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or seed < 0:
        raise ModuleError(f"The seed is {seed!r}; it is a whole number from 0.")
    return kind(stream(name, int(seed)), shape, np.dtype(dtype), number)


def stream(name: str, seed: int) -> np.random.Generator:
    """Return the random generator of the parameter `name`, independent of those of other parameters."""
    return np.random.default_rng([seed, *name.encode()])


def check_specs(specs: dict[str, Any]) -> None:
    """Raise ModuleError if one of the initialisers {name: spec} is invalid."""
    for name, spec in specs.items():
        read(spec, name)
