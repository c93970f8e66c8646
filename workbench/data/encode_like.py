"""A second file read as the first one was: the same features, kind of labels and classes."""

import dataclasses
from typing import Any

import numpy as np

from workbench.data.contract import Source
from workbench.data.dataset.record import Dataset
from workbench.data.errors import DataError


def parameters_like(source: Source, like: Dataset, given: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of the source that read a file as `like` was read; those given stay as they are."""
    known = source.parameters
    if "classes" not in known or "path" not in known:
        raise DataError(f"{source.name} is not read from a file; leave like= out.")
    if "features_kept" in like.facts:
        kept = f"{like.name} has {like.features} columns that keep_features chose and numbered anew"
        raise DataError(f"{kept}; read the file like the set as it was before that.")
    of_like = {"features": like.features, "kind": like.kind, **like.facts.get("reread", {})}
    if like.kind != "numbers" and given.get("kind", like.kind) == like.kind:
        of_like |= {"classes": _original_classes(like), "positive": like.labels.positive}
    parameters = {name: value for name, value in of_like.items() if name in known and value is not None} | given
    if like.labels.merged and parameters.get("unseen") == like.classes[-1]:
        parameters["unseen"] = like.labels.merged[0]  # which becomes that class
    return parameters


def _original_classes(like: Dataset) -> tuple[str, ...]:
    """Return the class names that a file may contain, with merged classes in place of their merger."""
    return (*like.classes[:-1], *like.labels.merged) if like.labels.merged else like.classes


def merge_classes_like(dataset: Dataset, like: Dataset) -> Dataset:
    """Merge classes as in `like` in what was read with its parameters; another number of features is refused."""
    if dataset.features != like.features:
        widths = f"{dataset.source} has {dataset.features} features and {like.source} {like.features}"
        raise DataError(f"{widths}; a file read like another has as many.")
    if dataset.kind == "numbers" == like.kind or dataset.classes == like.classes:
        return dataclasses.replace(dataset, labels=like.labels)
    if like.labels.merged and dataset.classes == _original_classes(like):
        return dataclasses.replace(dataset, y=np.minimum(dataset.y, len(like.classes) - 1), labels=like.labels)
    return dataset  # the caller named other classes
