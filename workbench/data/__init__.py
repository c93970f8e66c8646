"""Data sets, their transformations, and mini-batches.

`load(name, **parameters)` gives a `Dataset`: a CSR matrix, its labels, and where it comes from. Nothing is downloaded:
`stdlib` is the source text of the running Python, `uniform` and `power_law` are drawn from a seed, others read files of
yours, and `guess` says which one reads what; `guess_columns` says what the columns of a table are. `sparse` reads a
folder that `convert` wrote and that may be larger than memory. `Batches` cuts mini-batches from arrays;
`StoredBatches` reads them from a folder when needed, and `batches_of` takes what suits X.

What labels mean, classes, numbers or several classes a row, is said by `kind` or guessed from the file, and
`str(dataset.labels)` tells the guess; `targets` makes of them what a model is trained towards, `summary` says it in a
line. A held-out or later file is read `like` the first. `profile` counts what decides whether sparse formats pay.

Packages, each described in its `__init__.py`: `labels`, `dataset`, `batches`, `files`, `tables`, `text`, `stored`,
`sources`, `exports`, `profiles`.

How to add a data set: write one file in the folder `sources` that ends in `register(Source(...))`; `npz.py` is the one
to copy.

>>> from workbench.data import Batches, load, split
>>> train, test = split(load("uniform", rows=100, features=50, density=0.1, cache=False), held_out=0.2)
>>> train
Dataset uniform: 80 rows x 50 features, 5 entries a row, density 0.1, 2 classes
>>> [batch.x.shape for batch in Batches(train.x, train.y, rows=50).epoch(0)]
[(50, 50), (30, 50)]
"""

import importlib

_MODULES = {
    "batches.feed": "Batch Completed Feed",
    "batches.in_memory": "Batches",
    "cache": "Description describe is_cached load",
    "contract": "Source get names register unavailable",
    "dataset.record": "Dataset RowBlock RowBlocks StoredRows Stream row_lengths",
    "dataset.selection": "keep_features keep_rows merge_rare_classes rows_between shuffle_rows split "
    "take with_density with_positive",
    "dataset.targets": "natural_width summary targets with_labels",
    "errors": "DataError",
    "exports": "export",
    "files.types": "guess",
    "labels": "Labels",
    "profiles": "Profile profile",
    "stored.batches": "StoredBatches batches_of",
    "stored.converting": "Progress convert",
    "tables": "guess_columns",
}
"""Public names by the submodule that each is imported from when it is first used; `__init__.pyi` has their types."""
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}
__all__ = [*sorted(_MODULE_OF)]


def __getattr__(name: str) -> object:
    """Return a name of `__all__`, imported at the first access and cached.

    Raises AttributeError for an unknown name.
    """
    if (module := _MODULE_OF.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    return value
