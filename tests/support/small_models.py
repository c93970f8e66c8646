"""Small problems of any registered model, on data that is drawn for it."""

from typing import Any

import numpy as np

from workbench import data, models, training
from workbench.sweeps import problem


def training_of(
    model: models.Model, rows: int = 200, held_out: int = 0, **settings: Any
) -> tuple[training.Training, Any, np.ndarray]:
    """A training of the model in float64 on drawn data but for the first `held_out` rows, and the data."""
    width = next(width for width in (3, 1) if model.allows(width))
    drawn = problem.synthetic_parameters_for(
        model, width, rows=rows, features=40, density=0.2, seed=1, users=60, items=200
    )
    y = problem.targets(drawn, model, width, np.dtype("float64"))
    x = drawn.x.astype(np.float64)
    chosen = {"model": model.name, "batch_rows": 40, "dtype": "float64", "optimizer": "sgd", **settings}
    setup = training.Setup(**chosen)
    trained = x[held_out:]
    trained = trained.toarray() if setup.format == "dense" else trained
    trained_first = data.take(drawn, np.roll(np.arange(rows), -held_out))  # as the nodes of a graph are numbered
    return training.make_run(setup, trained, y[held_out:], width, problem.facts_of(trained_first)), x, y


def settings_for(name: str) -> dict[str, Any]:
    """Settings of a configuration of the model with data that suits it."""
    dataset = problem.synthetic_name_for(models.get(name))
    if problem.is_synthetic(dataset):
        return {"model": name, "dataset": dataset, "density": 0.2}
    return {"model": name, "dataset": dataset, "features": None}
