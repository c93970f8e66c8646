"""A second file read as the first one was: the same features, kind of labels and classes."""

import dataclasses
from typing import Any

import numpy as np

from workbench.data.contract import Source
from workbench.data.dataset import Dataset
from workbench.data.errors import DataError


def parameters_like(source: Source, like: Dataset, given: dict[str, Any]) -> dict[str, Any]:
    """The parameters of the source that read a file as `like` was read; those given stay as they are."""
    known = source.parameters
    if "classes" not in known or "path" not in known:
        raise DataError(f"{source.name} is not read from a file; leave like= out.")
    of_like = {"features": like.features, "kind": like.kind, "zero_based": like.facts.get("zero_based")}
    if like.kind != "numbers":
        of_like |= {"classes": _unmerged(like), "positive": like.labels.positive}
    parameters = {name: value for name, value in of_like.items() if name in known and value is not None} | given
    if like.labels.merged and parameters.get("unseen") == like.classes[-1]:
        parameters["unseen"] = like.labels.merged[0]  # which becomes that class
    return parameters


def _unmerged(like: Dataset) -> tuple[str, ...]:
    """The classes that files may name: those that were merged instead of the one they became."""
    return (*like.classes[:-1], *like.labels.merged) if like.labels.merged else like.classes


def relabelled(made: Dataset, like: Dataset) -> Dataset:
    """What was read with the parameters of `like`, with its merged classes; another number of features is refused."""
    if made.features != like.features:
        came = f"{made.source} has {made.features} features and {like.source} {like.features}"
        raise DataError(f"{came}; a file read like another has as many.")
    if made.kind == "numbers" == like.kind or made.classes == like.classes:
        return dataclasses.replace(made, labels=like.labels)
    if like.labels.merged and made.classes == _unmerged(like):
        return dataclasses.replace(made, y=np.minimum(made.y, len(like.classes) - 1), labels=like.labels)
    return made  # the caller named other classes
