"""Trainings that can be shared by several trainers, each of which has some of the rows."""

from typing import TYPE_CHECKING

from workbench import models

if TYPE_CHECKING:
    from workbench.training.setup import Setup


def multiple_trainers_reason(setup: "Setup", trainers: int) -> str:
    """Return the reason why so many trainers cannot share a training of the setup, as a sentence, or ""."""
    model = models.get(setup.model)
    if trainers < 1:
        return f"There are {trainers} trainers; there is 1 or more."
    if setup.device != "cpu":
        return "Trainers that share a training compute on cpu; on cuda a training has one trainer."
    if setup.launch != "kernels":
        return f"Trainers exchange rows at every step, and launch {setup.launch} does not stop there: take kernels."
    if setup.format != "csr" or setup.gradient == "fused":
        return (
            "Trainers send the rows that a batch touched: take format csr and the gradient row_sparse (or dense); "
            f"this is {setup.format} with {setup.gradient}."
        )
    if model.sampler is not None or not model.rows_apart:
        return f"The {model.name} model completes its batches from all rows, of which a trainer has some: it has one."
    if model.moves is not None:
        return f"The {model.name} model has weights at a pattern, which shards do not hold: it has one trainer."
    if setup.batch_rows % trainers:
        return f"Trainers have equal parts of a batch: {setup.batch_rows} rows are no multiple of {trainers}."
    return ""
