"""Training steps on a device against the CPU's kernels one by one, for the emulator and for a real device."""

import numpy as np

import kernels
from kernels import Case, plan
from kernels.gpu.slots import Room
from kernels.gpu.step import Step
from kernels.rules.rule import get_rule
from kernels.sessions import Session
from tests.support.cases import from_rows, random_case

PAIRS = [("sgd", "softmax"), ("adagrad", "squared"), ("adam", "logistic"), ("group_adagrad", "softmax")]
PAIRS += [("ftrl", "softmax"), ("momentum", "squared")]
"""Rules and losses."""

R, D = 300, 40


def hot(width: int, seed: int) -> Case:
    """Column 1 is in every row, so that its sum is cut into pieces."""
    rows, columns = np.tile(np.arange(R), 2), np.concatenate((np.full(R, 1), np.arange(R) * 7 % D))
    return from_rows(rows, columns, R, D, width, seed, dtype=np.float64)


def batches(width: int) -> list[Case]:
    """Of several sizes, some with fewer rows than there is room for, down to none."""
    some = [(R, 500), (R, 90), (R, 0), (R, 900), (129, 333), (1, 5), (0, 0)]
    made = [random_case(rows, D, z, width, seed=rows + z, dtype=np.float64) for rows, z in some]
    return [*made, hot(width, 1), random_case(R, D, 333, width, seed=9, dtype=np.float64)]


def targets_of(loss: str, case: Case) -> np.ndarray:
    random, rows = np.random.default_rng(case.seed), case.indptr.size - 1
    return random.integers(0, case.N, rows) if loss == "softmax" else random.random((rows, case.N))


def start(rule: str, width: int) -> list[np.ndarray]:
    """Weights and states."""
    random, made = np.random.default_rng(3), get_rule(rule)
    shape = (D,) if made.average else (D, width)
    return [random.standard_normal((D, width)), *[np.square(random.standard_normal(shape)) for _ in made.states]]


def make_step(session: Session, rule: str, arrays: list[np.ndarray], loss: str = "softmax", **more) -> Step:
    """With room for any of `batches`."""
    there = [session.device.put(array) for array in arrays]
    return Step(session, rule, there, **{"room": Room(R, 1000, D), "loss": loss, **more})


def step_on_cpu(rule: str, loss: str, arrays: list, case: Case, numbers: tuple) -> float:
    scores, gradient = np.empty((2, case.indptr.size - 1, case.N))
    kernels.get("csr_dense").cpu(case.indptr, case.indices, case.data, arrays[0], scores)
    value = kernels.get(loss).cpu(scores, targets_of(loss, case), gradient)
    p = plan.build(case.indptr, case.indices, D)
    batch = p.columns, p.segments, p.rows, p.in_order(case.data), gradient
    kernels.get(f"{rule}_fused").cpu(*arrays, *batch, *numbers)
    return value


def load(step: Step, slot: int, loss: str, case: Case) -> None:
    p = plan.build(case.indptr, case.indices, D)
    step.slots[slot].load(case.indptr, case.indices, case.data, targets_of(loss, case), p)


def assert_steps_are_those_of_the_cpu(session: Session, rule: str, loss: str, width: int, during) -> None:
    """Weights, states and loss after every batch, with a rate that changes; each step is run within `during()`."""
    arrays = start(rule, width)
    step = make_step(session, rule, arrays, loss)
    for number, case in enumerate(batches(width), start=1):
        numbers = list(get_rule(rule).example)
        numbers[0] /= number
        numbers = (*numbers[:-1], number) if rule == "adam" else tuple(numbers)
        load(step, number % 2, loss, case)
        with during():
            step.run(number % 2, *numbers)
        expected = step_on_cpu(rule, loss, arrays, case, numbers)
        np.testing.assert_allclose(step.loss(), expected, rtol=1e-12)
        for came, wanted in zip(step.read(), arrays, strict=True):
            np.testing.assert_allclose(came, wanted, rtol=1e-9, atol=1e-12)
