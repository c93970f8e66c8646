"""Operators without inputs: arrays of zeros or of random numbers, in any format.

Random numbers come from a seed or a `numpy.random.Generator` passed in: the same seed gives the same numbers in every
format. Every position is drawn: row_sparse stores all rows, csr, csc and coo every entry that is not zero.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from workbench import formats
from workbench.ops.contract import REQUIRED, OpError, Rule, Shape, operator, real

SHAPED: Mapping[str, Any] = {"shape": REQUIRED, "format": "dense", "dtype": "float32"}


def _shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the parameter `shape` as a tuple of int; FormatError for an unknown format. `shapes` is unused."""
    formats.get(params["format"])
    return tuple(int(length) for length in params["shape"])


def _dtype(dtypes: Sequence[np.dtype], params: Mapping[str, Any]) -> np.dtype:
    """Return the parameter `dtype`; OpError for random numbers, those with a seed, unless it is a float dtype.

    `dtypes` is unused.
    """
    dtype = np.dtype(params["dtype"])
    return real([dtype], params) if "seed" in params else dtype


def _rules(call: Callable) -> tuple[Rule, ...]:
    """Return one rule without inputs for each format that the parameter `format` may name."""

    def rule(form: str) -> Rule:
        """Return the rule whose result has the format `form`."""

        def when(shapes: Sequence[Shape], params: Mapping[str, Any]) -> bool:
            """Return whether the parameter `format` is `form`; `shapes` is unused."""
            return params["format"] == form

        return Rule((), form, call, when=when, condition=f"format == {form!r}")

    return tuple(rule(form) for form in formats.names())


def _register(name: str, call: Callable, doc: str, more: Mapping[str, Any]) -> None:
    """Register an operator without inputs: `call` makes the array, `doc` describes it.

    `more` are parameters {name: default} in addition to shape, format and dtype.
    """
    operator(
        name, call, _shape, doc, inputs=(), params={**SHAPED, **more}, rules=_rules(call), dtype=_dtype, family="fill"
    )


def _zeros(out: np.ndarray | None = None, *, shape: Shape, format: str, dtype: str) -> Any:
    """Return zeros of this shape, format and dtype; `out`, dense, is zeroed and returned if given."""
    if out is None:
        return formats.zeros(tuple(shape), format, dtype)
    out[...] = 0
    return out


def _filled_by(draw: Callable) -> Callable:
    """Return an operator's call from `draw(generator, shape, **params)`, which returns a dense array."""

    def call(
        out: np.ndarray | None = None, *, shape: Shape, format: str, dtype: str, seed: Any, **params: float
    ) -> Any:
        """Return random values of this shape and dtype in the format `format`, in `out` if given.

        Row_sparse stores all rows. `seed` as in `generator`.
        """
        values = draw(generator(seed), tuple(shape), **params).astype(dtype, copy=False)
        if out is not None:
            np.copyto(out, values)
            return out
        if format == "row_sparse":
            return formats.RowSparse(values, np.arange(values.shape[0]), values.shape)
        return formats.to_format(values, format)

    return call


def generator(seed: int | np.random.Generator) -> np.random.Generator:
    """Return `seed` itself if it is a Generator, else a new one from the integer. Raises OpError unless it is >= 0."""
    if isinstance(seed, np.random.Generator):
        return seed
    if isinstance(seed, int | np.integer) and seed >= 0:
        return np.random.default_rng(seed)
    raise OpError(f"seed is {seed!r}; a whole number from 0 on or a numpy.random.Generator is allowed.")


def _uniform(source: np.random.Generator, shape: Shape, low: float, high: float) -> np.ndarray:
    """Return float64 numbers of this shape, uniform in [low, high), from the generator `source`."""
    return source.uniform(low, high, shape)


def _normal(source: np.random.Generator, shape: Shape, mean: float, deviation: float) -> np.ndarray:
    """Return normal float64 numbers of this shape with `mean` and standard deviation `deviation`, from `source`."""
    return source.normal(mean, deviation, shape)


_register("zeros", _zeros, "Zeros; sparse formats store nothing.", {})
_register(
    "random_uniform",
    _filled_by(_uniform),
    "Numbers drawn evenly from [low, high).",
    {"seed": REQUIRED, "low": 0.0, "high": 1.0},
)
_register(
    "random_normal",
    _filled_by(_normal),
    "Numbers drawn from the normal distribution.",
    {"seed": REQUIRED, "mean": 0.0, "deviation": 1.0},
)
