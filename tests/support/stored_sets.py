"""Small folders of stored rows that several tests read."""

import numpy as np

from tests.support.small_sets import csr
from workbench import data


def drawn(rows=300, features=40, classes=3, groups=None, dtype=np.float32, values="normal", seed=0):
    """A set with rows of different lengths, some of them empty."""
    made = data.load(
        "power_law", rows=rows, features=features, density=0.1, classes=classes, seed=seed, values=values, cache=False
    )
    return data.Dataset("drawn", made.x.astype(dtype), made.y, made.labels, "here", "none", groups, {"seed": seed})


def stored(folder, dataset, shuffle=None, **parameters):
    """The set converted into the folder, opened."""
    data.convert(dataset, folder, shuffle=shuffle, **parameters)
    return data.load("sparse", path=folder)


def blocks(pairs, features=None, labels=None):
    """Blocks of (x, labels) as a source gives them."""
    return data.RowBlocks(pairs, "blocks", "some blocks", "none", features, labels)


def block(rows=3, labels=None, features=4):
    """A block of rows with an entry each, and their labels, by default numbers from 0."""
    x = csr(np.arange(rows + 1), np.arange(rows) % features, np.arange(1, rows + 1), (rows, features))
    return x, np.arange(float(rows)) if labels is None else np.array(labels)


def whole(folder):
    return data.load("sparse", path=folder, whole=True, verify=True)


def left_over(folder):
    """Names of what a conversion left in the folder."""
    return sorted(path.name for path in folder.iterdir() if ".sparse" in path.name)
