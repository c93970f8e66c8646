"""A checkpoint of several ranks as a trained model, for `workbench apply` and `train --save`.

A table of a linear model has the rows that batches have touched, of 10^8 and more that it may have; the others are
zero. The model has these rows alone, and reads these columns of a file. Tables of other models are made whole.

>>> load_checkpoint("nowhere")
Traceback (most recent call last):
workbench.kvstore.StoreError: nowhere holds no checkpoint: there is no manifest.json, which is written last.
"""

import dataclasses
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from workbench import data, formats, models
from workbench.cluster.checkpoints import MANIFEST
from workbench.cluster.store import MpiStore, OneRank
from workbench.data.labels import Labels
from workbench.formats import RowSparse
from workbench.json_text import check_fields, is_whole
from workbench.kvstore import StoreError
from workbench.sweeps.grid import setup_of
from workbench.sweeps.problem import parameters_of_file
from workbench.sweeps.spec import Configuration
from workbench.training.setup import Setup
from workbench.training.trained import (
    FACTS,
    FACTS_EXPECTED,
    KEPT,
    NOT_OF_READER,
    READ,
    ModelFolderError,
    TrainedModel,
    plain_value,
    why_not_kept,
)


def describe_data(dataset: data.Dataset, width: int) -> dict[str, Any]:
    """Return what a model needs of the data that it was trained on besides its weights, as JSON values."""
    facts = {name: dataset.facts[name] for name in (*FACTS, *READ) if name in dataset.facts}
    found = {"labels": dataclasses.asdict(dataset.labels), "facts": facts, "width": width}
    return json.loads(json.dumps(found, default=plain_value))


def is_checkpoint(folder: str | os.PathLike) -> bool:
    """Return whether the folder holds a checkpoint."""
    return (Path(folder) / MANIFEST).is_file()


def load_checkpoint(folder: str | os.PathLike) -> TrainedModel:
    """Return the model of a checkpoint, which any number of ranks wrote.

    Parameters
    ----------
    folder
        The folder of checkpoints of `workbench train --trainers N`.

    Returns
    -------
    TrainedModel
        The model as it was at the checkpoint.

    Raises
    ------
    StoreError
        If there is no checkpoint, or it is damaged.
    ModelFolderError
        If it is of a script of its own, or of a model that is not kept.
    """
    store = MpiStore(OneRank())
    about = store.load_shards(folder)
    if not isinstance(about.get("data"), Mapping) or "cell" not in about:
        raise ModelFolderError(
            f"The checkpoint in {folder} does not say what it was trained on; expected one of train."
        )
    try:
        configuration, of_data = Configuration(**about["cell"]), about["data"]
        labels, facts, width = Labels.of_json(of_data["labels"]), dict(of_data["facts"]), of_data["width"]
        check_fields(facts, {name: wanted for name, wanted in FACTS_EXPECTED.items() if name in facts}, "facts")
        if not is_whole(width, 1) or (labels.kind != "numbers" and not labels.classes):
            raise ValueError(f"its width is {width!r:.40}, its classes are {labels.classes!r:.40}")
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise StoreError(f"{Path(folder) / MANIFEST} is damaged: {error}.") from None
    setup, model = setup_of(configuration), models.get(configuration.model)
    if reason := why_not_kept(model):
        raise ModelFolderError(reason)
    store.catch_up()
    arrays: dict[str, Any] = {}
    features = store.held["w"].shape[0] if "w" in store.held else 0
    for key, value in store.part.values.items():
        if model.is_product and key == "w" and isinstance(value, RowSparse) and len(value.indices) < features:
            facts |= _kept(facts, value.indices, features)
            features, arrays["w"] = len(value.indices), value.values
        else:  # rows that were never touched are drawn
            arrays[str(key)] = formats.to_format(store.pull(key), "dense")
    known = {name: getattr(setup, name) for name in KEPT[:-1]} | {"intercept": setup.has_intercept}
    given = parameters_of_file(vars(configuration)) if configuration.path else {}
    given = {name: value for name, value in given.items() if name not in NOT_OF_READER}
    reader = configuration.dataset if configuration.path else ""
    sizes = features or next(iter(arrays.values())).shape[0], width
    return TrainedModel(Setup(**known), arrays, *sizes, labels, facts, reader, given, setup.format)


def _kept(facts: Mapping[str, Any], rows: np.ndarray, features: int) -> dict[str, Any]:
    """Return the facts on the columns that a model with these `rows` of a table of `features` reads of a file."""
    before = facts.get("columns_kept")
    columns = rows if before is None else np.asarray(before)[rows]
    known = {"columns_kept": columns, "features_kept": len(columns)}
    return known | {"features_before": facts.get("features_before", features)}
