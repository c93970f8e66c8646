"""Training steps on a device against the CPU's kernels one by one, for the emulator and for a real device."""

import numpy as np

import kernels
from kernels import Case, plan
from kernels.gpu.slots import Capacity, DenseStep, Step
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
    return Step(session, rule, there, **{"capacity": Capacity(R, 1000, D), "loss": loss, **more})


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
        numbers = numbers_at(rule, number)
        load(step, number % 2, loss, case)
        with during():
            step.run(number % 2, *numbers)
        expected = step_on_cpu(rule, loss, arrays, case, numbers)
        np.testing.assert_allclose(step.loss(), expected, rtol=1e-12)
        for came, wanted in zip(step.read(), arrays, strict=True):
            np.testing.assert_allclose(came, wanted, rtol=1e-9, atol=1e-12)


# Dense batches


def dense_batches(width: int, dtype: str, loss: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Values [R, D] and targets of several sizes: full ones, fewer rows, one row, none; zeros and large values."""
    random, made = np.random.default_rng(width), []
    for rows in (R, R, 129, 1, 0, R, 129, 1, 77):
        x = random.standard_normal((rows, D)).astype(dtype)
        x[random.random(x.shape) < 0.3] = 0
        x[:1] *= 100
        numbers = random.random((rows, width)).astype(dtype)
        made.append((x, random.integers(0, width, rows) if loss == "softmax" else numbers))
    return made


def dense_start(rule: str, width: int, dtype: str) -> list[np.ndarray]:
    return [array.astype(dtype) for array in start(rule, width)]


def make_dense_step(session: Session, rule: str, arrays: list[np.ndarray], loss: str = "softmax", **more) -> DenseStep:
    """With room for any of `dense_batches`."""
    return DenseStep(session, rule, [session.device.put(array) for array in arrays], R, loss, **more)


def numbers_at(rule: str, step: int) -> tuple[float, ...]:
    """Another rate in every step; the number of the step where the rule takes it."""
    rate, *others = get_rule(rule).example
    return (rate / step, *others[:-1], step) if rule == "adam" else (rate / step, *others)


def dense_step_by_kernels(session: Session, rule: str, loss: str, arrays: list, batch: tuple, numbers: tuple) -> float:
    """A step by kernels one by one, on arrays of the device that are as large as the batch."""
    x, targets = map(session.device.put, batch)
    scores, slope = (session.device.empty((x.shape[0], arrays[0].shape[1]), x.dtype) for _ in range(2))
    gradient, value = session.device.empty(arrays[0].shape, x.dtype), 0.0
    if x.size:
        session.matmul(x, arrays[0], scores)
        value = float(kernels.get(loss).gpu(scores, targets, slope))
    session.matmul(x, slope, gradient, transposed=True)
    kernels.get(f"{rule}_dense").gpu(*arrays, gradient, *numbers)
    return value


def dense_step_on_cpu(rule: str, loss: str, arrays: list, batch: tuple, numbers: tuple) -> float:
    x, targets = batch
    scores, slope = np.empty((2, x.shape[0], arrays[0].shape[1]), x.dtype)
    np.matmul(x, arrays[0], out=scores)
    value = kernels.get(loss).cpu(scores, targets, slope)
    kernels.get(f"{rule}_dense").cpu(*arrays, x.T @ slope, *numbers)
    return value


def assert_dense_steps_are_those_of_kernels(
    session: Session, rule: str, loss: str, width: int, dtype: str, during
) -> None:
    """Weights, states and loss to the bit after every batch, and nearly those of the CPU."""
    arrays = dense_start(rule, width, dtype)
    step, there = make_dense_step(session, rule, arrays, loss), [session.device.put(array) for array in arrays]
    rtol = 1e-9 if dtype == "float64" else 2e-4
    for number, batch in enumerate(dense_batches(width, dtype, loss), start=1):
        numbers = numbers_at(rule, number)
        step.slots[number % 2].load(*batch)
        with during():
            step.run(number % 2, *numbers)
        assert step.loss() == dense_step_by_kernels(session, rule, loss, there, batch, numbers)
        np.testing.assert_allclose(step.loss(), dense_step_on_cpu(rule, loss, arrays, batch, numbers), rtol=rtol)
        for came, wanted, here in zip(step.read(), there, arrays, strict=True):
            np.testing.assert_array_equal(came, session.device.read(wanted))
            np.testing.assert_allclose(came, here, rtol=rtol, atol=rtol)
