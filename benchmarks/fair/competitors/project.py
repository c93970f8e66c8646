"""The project's own trainings, as users start them: dense and CSR, an epoch in one call and a step at a time."""

import dataclasses
from collections.abc import Mapping
from functools import partial
from typing import Any, final

import numpy as np

from benchmarks.fair.competitors import Candidate, register, settings_of
from workbench import training
from workbench.advising.frameworks.training import Problem, State, Trainer

DENSE = {"format": "dense", "engine": "dense", "gradient": "dense", "update": "standard"}
CSR = {"format": "csr", "engine": "ours", "gradient": "row_sparse"}
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "dense": [
        DENSE | {"execution": "epoch"},
        DENSE | {"execution": "step"},
        DENSE | {"execution": "epoch", "storage": "csr"},
        DENSE | {"execution": "step", "storage": "csr"},
    ],
    "sparse": [
        CSR | {"update": "lazy", "execution": "epoch"},
        CSR | {"update": "standard", "execution": "epoch"},
        CSR | {"gradient": "fused", "update": "lazy", "execution": "step"},
    ],
}
"""Settings of the trainings by how they train; data held as CSR and made dense a batch at a time counts as dense."""
SAME = ("format", "engine", "gradient", "update", "execution", "storage")
"""Settings that are told in a name, those that all of a kind share left out."""


@final
class ProjectTrainer(Trainer):
    """A training of the project, by its events: those of an epoch up to the batches asked for."""

    def __init__(self, problem: Problem, settings: Mapping[str, Any]) -> None:
        """Make the project's training with these settings, on dense rows if they are stored dense, else on CSR rows."""
        super().__init__(problem)
        is_dense = settings["format"] == "dense" and settings.get("storage", "same") == "same"
        x = problem.dense if is_dense else problem.csr
        self.training: Any = training.make_run(setup_of(problem, settings), x, problem.targets, problem.outputs)
        self.epoch = 0
        self.losses: list[float] = []

    def first_order(self) -> np.ndarray:
        """Return the row indices of the training's own first epoch, int64 [R]."""
        return self.training.batches.order(0)

    def run(self, batches: int) -> int:
        """Train the next epoch, stopping once at least `batches` batches are done; return how many were."""
        self.losses, done = [], 0
        events = self.training.epoch(self.epoch)
        for event in events:
            self.losses += [event.loss] if event.losses is None else event.losses.tolist()
            done += event.steps
            if done >= batches:
                break
        events.close()
        self.epoch += 1
        return done

    def state(self) -> State:
        """Return weights and intercept after applying deferred updates, and the losses of the last run."""
        self.training.catch_up()
        return State(self.training.weights, self.training.intercept, np.array(self.losses))


def setup_of(problem: Problem, settings: Mapping[str, Any]) -> training.Setup:
    """Return the training setup of a problem: plain SGD, shuffled, with intercept, and these settings."""
    configuration = problem.sizes
    return training.Setup(
        model=configuration.model,
        optimizer="sgd",
        options={"learning_rate": problem.rate},
        batch_rows=configuration.batch_rows,
        intercept=True,
        shuffle=True,
        seed=configuration.seed,
        **settings,
    )


def why_not(problem: Problem, settings: Mapping[str, Any]) -> str:
    """Return why the project has no training with these settings, "" if it has."""
    known = {field.name for field in dataclasses.fields(training.Setup)}
    if unknown := sorted(set(settings) - known):
        return f"The project has no setting {', '.join(unknown)} yet."
    return training.impossible_reason(setup_of(problem, settings))


def name_of(kind: str, settings: Mapping[str, Any]) -> str:
    """Return the name of a training: its format and the settings that vary within its kind.

    An example is "project, csr, execution epoch, update lazy".
    """
    varied = {
        name: settings[name]
        for name in SAME
        if any(one.get(name) != settings.get(name) for one in SETTINGS[kind]) and name in settings
    }
    return f"project, {settings['format']}, {settings_of(varied)}"


for _kind, _all in SETTINGS.items():
    for _settings in _all:
        register(
            Candidate(
                name_of(_kind, _settings),
                "project",
                _kind,
                partial(ProjectTrainer, settings=_settings),
                partial(why_not, settings=_settings),
            )
        )
