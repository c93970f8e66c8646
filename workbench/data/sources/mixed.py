"""Synthetic data as tables have it: a few columns with a number in every row, next to many rare ones.

Of d * D entries in a row of D columns at density d, floor(present * d * D) are in the columns that are always present,
the first ones; the rest are in the other columns, as popular and as many a row as those of `power_law`. So with
`present` = 0.5 and 2,048 columns, 10 columns are always present at 1 % density, 102 at 10 % and 614 at 60 %. Labels
come from a planted linear teacher of all columns.
"""

from workbench.data.contract import Source, register
from workbench.data.dataset.record import Dataset
from workbench.data.synthetic import LICENCE, ORIGIN, Recipe, draw


def make(
    rows: int = 16_384,
    features: int = 65_536,
    density: float = 0.001,
    seed: int = 0,
    present: float = 0.5,
    sigma: float = 1.0,
    slope: float = 1.0,
    shift: float = 3.0,
    classes: int | None = 2,
    width: int = 1,
    noise: float = 0.1,
    values: str = "normal",
) -> Dataset:
    """Return synthetic data, CSR [rows, features] with density * rows * features entries, popular columns first.

    `present` is the share of the entries in columns that every row has, 0 for none; below one such column there is
    none. The other parameters are those of `power_law`, and are about the rare columns alone; with `values` ones these
    have 1 as categories do, and the columns always present numbers. Raises DataError for parameters out of range.
    """
    recipe = Recipe(rows, features, density, seed, sigma, slope, shift, classes, width, noise, values, present)
    return draw("mixed", recipe)


register(Source("mixed", make, ORIGIN, LICENCE))
