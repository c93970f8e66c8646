"""Synthetic data without skew: every column is as popular as every other one, and rows are equally long."""

from workbench.data.contract import Source, register
from workbench.data.dataset.record import Dataset
from workbench.data.synthetic import LICENCE, ORIGIN, Recipe, draw


def make(
    rows: int = 16_384,
    features: int = 65_536,
    density: float = 0.001,
    seed: int = 0,
    sigma: float = 0.0,
    classes: int | None = 2,
    width: int = 1,
    noise: float = 0.1,
    values: str = "normal",
) -> Dataset:
    """Return synthetic data without skew, CSR [rows, features] with density * rows * features entries.

    `sigma` is that of the lognormal row lengths, 0 for equal ones. Labels are `classes` of a planted linear teacher, or
    None for float targets of `width`; `noise` is relative to the spread of the scores. `values` are `normal`, |N(0, 1)|
    with rows of 2-norm 4, or `ones`. Raises DataError for parameters out of range.
    """
    recipe = Recipe(rows, features, density, seed, sigma, 0.0, 1.0, classes, width, noise, values)
    return draw("uniform", recipe)


register(Source("uniform", make, ORIGIN, LICENCE))
