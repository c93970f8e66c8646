"""Update rules: against the formulas of their papers, and fused with the gradient against the two steps apart."""

import numpy as np
import pytest
from cases import CASES, random_case, sorted_case
from twins import assert_close, copies, get, run, same_bits

import kernels
from kernels import Case, threads

RULES = [name.removesuffix("_fused") for name in kernels.names() if name.endswith("_fused")]
SHAPES = {"width 513": random_case(40, 30, 400, 513)}
SHAPES |= {name: CASES[name] for name in ("no entries", "narrow", "width 33", "64 bits")}
every_rule = pytest.mark.parametrize("rule", RULES)


@pytest.fixture
def many_parts(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(threads, "SERIAL_WORK", 1)
    before = threads.get_threads()
    yield
    threads.set_threads(before)


def by_hand(rule: str, w, states, g, numbers) -> list:
    """Weights and states after a step, in NumPy, from the formulas in the papers."""
    if rule == "sgd":
        rate, decay = numbers
        return [w - rate * (g + decay * w)]
    if rule == "momentum":
        rate, decay, beta = numbers
        velocity = beta * states[0] + g + decay * w
        return [w - rate * velocity, velocity]
    if rule == "adam":
        rate, decay, beta1, beta2, epsilon, step = numbers
        d = g + decay * w
        mean, variance = beta1 * states[0] + (1 - beta1) * d, beta2 * states[1] + (1 - beta2) * d**2
        rate *= np.sqrt(1 - beta2**step) / (1 - beta1**step)
        return [w - rate * mean / (np.sqrt(variance) + epsilon), mean, variance]
    if rule == "ftrl":
        return _ftrl_by_hand(w, states, g, *numbers)
    rate, decay, epsilon = numbers
    d = g + decay * w
    history = states[0] + ((d**2).mean(1) if rule == "rowwise_adagrad" else d**2)
    root = np.sqrt(history)[:, None] if rule == "rowwise_adagrad" else np.sqrt(history)
    return [w - rate * d / (root + epsilon), history]


def _ftrl_by_hand(w, states, g, rate, beta, l1, l2) -> list:
    z, n = states
    sigma = (np.sqrt(n + g**2) - np.sqrt(n)) / rate
    z, n = z + g - sigma * w, n + g**2
    shrunk = np.sign(z) * np.maximum(np.abs(z) - l1, 0)
    return [-shrunk / ((beta + np.sqrt(n)) / rate + l2), z, n]


def parts_of(rule: str, kind: str, args: tuple) -> tuple[tuple, tuple, tuple]:
    """(weights and states), (what gives the gradient), (numbers)."""
    kernel = get(f"{rule}_{kind}")
    count = len(kernel.writes)
    numbers = sum(letter == "s" for _, letter, _ in kernel.parsed)
    return args[:count], args[count : len(args) - numbers], args[len(args) - numbers :]


@every_rule
@pytest.mark.parametrize("width", [1, 3, 16, 40])
def test_step_is_the_formula_of_the_paper(rule: str, width: int) -> None:
    kernel = get(f"{rule}_dense")
    args = kernel.arguments(random_case(5, 9, 20, width, dtype=np.float64, index=np.int64))
    (weights, *states), (gradient,), numbers = parts_of(rule, "dense", args)
    expected = by_hand(rule, weights, states, gradient, numbers)
    came = run(kernel.cpu, args)[: 1 + len(states)]
    for one, other in zip(came, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def two_steps(rule: str, case: Case) -> list:
    """Weights and states after csr_t_dense and then the lazy update."""
    arrays, batch, numbers = parts_of(rule, "fused", get(f"{rule}_fused").arguments(case))
    columns, segments, rows, permutation, data, g = batch
    gradient = np.empty((columns.size, g.shape[1]), g.dtype)
    get("csr_t_dense").cpu(segments, rows, permutation, data, g, gradient)
    return run(get(f"{rule}_lazy").cpu, (*arrays, columns, gradient, *numbers))[: len(arrays)]


@every_rule
@pytest.mark.parametrize("case", SHAPES.values(), ids=SHAPES)
def test_fused_step_is_the_gradient_and_the_lazy_update(rule: str, case: Case) -> None:
    kernel = get(f"{rule}_fused")
    came = run(kernel.cpu, kernel.arguments(case))[: len(kernel.writes)]
    assert_close(case, came, two_steps(rule, case))


@every_rule
@pytest.mark.usefixtures("many_parts")
def test_fused_step_has_the_same_bits_on_one_thread_and_on_two(rule: str) -> None:
    kernel, case = get(f"{rule}_fused"), sorted_case(random_case(300, 90, 4000, 16))
    args = kernel.arguments(case)
    threads.set_threads(1)
    one = run(kernel.cpu, args)
    threads.set_threads(2)
    assert same_bits(one, run(kernel.cpu, args))


@every_rule
def test_rows_that_no_column_touches_keep_their_bits(rule: str) -> None:
    kernel, case = get(f"{rule}_fused"), random_case(6, 5000, 40, 16)
    args = kernel.arguments(case)
    after = copies(args)
    kernel.cpu(*after)
    untouched = np.setdiff1d(np.arange(case.D), case.indices)
    for before, now in zip(args[: len(kernel.writes)], after, strict=False):
        assert same_bits([before[untouched]], [now[untouched]])


def test_ftrl_sets_weights_under_the_penalty_to_exactly_zero() -> None:
    kernel = get("ftrl_dense")
    args = list(copies(kernel.arguments(random_case(5, 200, 20, 16))))
    args[-2] = 0.8  # l1
    kernel.cpu(*args)
    weights, linear = args[:2]
    assert 0.1 < np.mean(weights == 0) < 0.9
    assert ((weights == 0) == (np.abs(linear) <= np.float32(0.8))).all()
