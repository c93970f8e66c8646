"""Notes on what an executor does beyond the rules of the operators, in words, for `explain`."""

import math
from typing import TYPE_CHECKING

import numpy as np

from workbench.executor import steps
from workbench.executor.binding import leaf_facts
from workbench.graph.explanation import Explanation
from workbench.graph.inference import infer

if TYPE_CHECKING:
    from workbench.executor.run import Executor


def explain(executor: "Executor") -> Explanation:
    """The graph with its gradients, sizes by the arrays of the last call, densities by those that are still held."""
    leaves = {facts.name: facts for facts in executor.inference if facts.name in executor.alike}
    current = {"shapes": {name: executor.held_shapes[slot] for name, slot in executor.slots.items()}}
    known = leaf_facts(leaves, {**executor.declared, **current})
    inference = infer(executor.training.graph, **known, densities=_densities(executor))
    notes = _notes(executor)
    slopes = {slope.given: executor.training.names[loss] for loss, slope in executor.training.slopes.items()}
    made_by = {facts.name: slopes[facts.name] for facts in inference if facts.name in slopes}
    kinds = dict.fromkeys(_heads(executor), "head gradient") | dict.fromkeys(made_by, "slope")
    return Explanation(inference, notes | dict.fromkeys(made_by, "written by the loss"), made_by, kinds)


def _heads(executor: "Executor") -> list[str]:
    """Names of the variables for head gradients."""
    return [*executor.alike][: len(executor.output_names)]


def _densities(executor: "Executor") -> dict[str, float]:
    gone = executor.released.names.values()
    held = {name: array for name, array in executor.args.items() if name not in gone}
    sparse = {name: array for name, array in held.items() if not isinstance(array, np.ndarray)}
    return {name: array.nnz / max(math.prod(array.shape), 1) for name, array in sparse.items()}


def _notes(executor: "Executor") -> dict[str, str]:
    program = executor.program
    notes = dict.fromkeys(_heads(executor), "from outside, or ones")
    notes |= {step.name: "with its slope, one pass" for step in program.training if step.part == "loss"}
    for step in (*program.forward, *program.backward):
        if step.call is steps.scaled:
            notes[step.name] = "in place of the slope"
        elif step.call is steps.passed:
            notes[step.name] = "handed on, no copy"
        elif getattr(step.call, "__name__", "") == "factors":
            notes[step.name] = "left unsummed, for the update"
    return notes
