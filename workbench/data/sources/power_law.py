"""Synthetic data as skewed as text and clicks are: few columns in many rows, many columns in few.

Popularity falls as (j + shift)**-slope (Zipf-Mandelbrot); text has slopes of 0.7 to 0.8, click logs 1.0 to 1.5. Row
lengths are lognormal. Labels come from a planted linear teacher, so that there is something to learn.
"""

from workbench.data.contract import Source, register
from workbench.data.dataset.record import Dataset
from workbench.data.synthetic import LICENCE, ORIGIN, Recipe, draw


def make(
    rows: int = 16_384,
    features: int = 65_536,
    density: float = 0.001,
    seed: int = 0,
    sigma: float = 1.0,
    slope: float = 1.0,
    shift: float = 3.0,
    classes: int | None = 2,
    width: int = 1,
    noise: float = 0.1,
    values: str = "normal",
) -> Dataset:
    """Return synthetic data, CSR [rows, features] with density * rows * features entries, popular columns first.

    `sigma` is that of the lognormal row lengths, 0 for equal ones, capped at ten times the mean; rows may be empty.
    Labels are `classes`, or None for float targets of `width`; `noise` is relative to the spread of the scores.
    `values` are `normal`, |N(0, 1)| with rows of 2-norm 4, or `ones`. Raises DataError for parameters out of range.
    """
    recipe = Recipe(rows, features, density, seed, sigma, slope, shift, classes, width, noise, values)
    return draw("power_law", recipe)


register(Source("power_law", make, ORIGIN, LICENCE))
