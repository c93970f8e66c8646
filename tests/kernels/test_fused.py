"""Update rules: against the formulas of their papers, and fused with the gradient against the two steps apart."""

import dataclasses
import math

import numpy as np
import pytest

import kernels
from kernels import Case, KernelError, threads
from kernels.rules.missed import Spans, take_stale
from kernels.rules.rule import get_rule, register_kernels
from tests.support import rules_by_hand
from tests.support.cases import CASES, random_case, sorted_case
from tests.support.implementations import assert_close, copies, get, run, same_bits
from tests.support.thread_counts import needs_two, share_out

RULES = [name.removesuffix("_fused") for name in kernels.names() if "." not in name and name.endswith("_fused")]
SHAPES = {"no entries": random_case(4, 5, 0, 3), **{name: CASES[name] for name in ("narrow", "width 33", "64 bits")}}
"""Widths that are in `test_kernels.py` too: each other one compiles code of its own for every rule."""
WIDE = random_case(40, 30, 400, 513)
DISTINCT = ("adagrad", "group_adagrad")
"""Rules whose states differ in shape; the others differ from them in their formula alone."""
OTHERS = [rule for rule in RULES if rule not in DISTINCT]
MORE_SHAPES = [name for name in SHAPES if name != "width 33"]
"""Shapes for which each of these rules compiles code that `test_kernels.py` does not have; they run with
`--exhaustive`."""
every_rule = pytest.mark.parametrize("rule", RULES)


@pytest.fixture
def many_parts(monkeypatch: pytest.MonkeyPatch, kept_threads) -> None:
    share_out(monkeypatch)


def parts_of(rule: str, kind: str, args: tuple) -> tuple[tuple, tuple, tuple]:
    """(weights and states), (what gives the gradient), (numbers)."""
    kernel = get(f"{rule}_{kind}")
    count = len(kernel.writes)
    numbers = sum(letter == "s" for _, letter, _ in kernel.parsed)
    return args[:count], args[count : len(args) - numbers], args[len(args) - numbers :]


def named(rule: str, numbers: tuple) -> dict[str, float]:
    return dict(zip(get_rule(rule).numbers, numbers, strict=True))


@every_rule
@pytest.mark.parametrize("unclipped", [False, True], ids=["clipped", "unclipped"])
@pytest.mark.parametrize("width", [1, 3, 16, 40])
def test_step_is_the_formula_of_the_paper(rule: str, width: int, unclipped: bool) -> None:
    kernel = get(f"{rule}_dense")
    args = kernel.arguments(random_case(5, 9, 20, width, dtype=np.float64, index=np.int64))
    (weights, *states), (gradient,), numbers = parts_of(rule, "dense", args)
    numbers = named(rule, numbers) | ({"clip": math.inf} if unclipped else {})
    expected = rules_by_hand.step(rule, weights, states, gradient, numbers)
    came = run(kernel.cpu, (weights, *states, gradient, *numbers.values()))[: 1 + len(states)]
    for one, other in zip(came, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


def each_rule_and_each_kind(case: dict) -> set:
    """Return the targets of a case: its kind with rules whose states differ in shape, every rule in dense steps."""
    return {(case["rule"], case["kind"])} if case["rule"] in DISTINCT or case["kind"] == "dense" else set()


@pytest.mark.covering(targets=each_rule_and_each_kind)
@every_rule
@pytest.mark.parametrize("kind", ["dense", "lazy", "fused"])
def test_gradient_as_it_is_has_code_of_its_own_with_the_same_bits(rule: str, kind: str) -> None:
    kernel = get(f"{rule}_{kind}")
    came = []
    for rescale, clip in ((1.0, math.inf), (1.0, 1e30)):
        arrays, gradient, numbers = parts_of(rule, kind, kernel.arguments(random_case(40, 30, 300, 3)))
        numbers = named(rule, numbers) | {"rescale": rescale, "clip": clip}
        came.append(run(kernel.cpu, (*arrays, *gradient, *numbers.values()))[: len(arrays)])
    assert same_bits(*came)


def test_rule_must_pass_rescale_and_clip_on() -> None:
    wrong = dataclasses.replace(
        get_rule("sgd"), name="none", settings=lambda learning_rate, decay, rescale, clip: (learning_rate, decay)
    )
    with pytest.raises(KernelError, match="none: the last two settings must be rescale and clip"):
        register_kernels(wrong)


@every_rule
def test_gradient_that_is_not_a_number_shows_in_the_weights(rule: str) -> None:
    kernel = get(f"{rule}_dense")
    args = copies(kernel.arguments(random_case(5, 9, 20, 16)))
    arrays, (gradient,), _ = parts_of(rule, "dense", args)
    gradient[2, 3] = np.nan
    kernel.cpu(*args)
    wrong = np.isnan(arrays[0])
    assert wrong[2].all() if get_rule(rule).average else wrong.sum() == 1
    assert wrong[2, 3]


def two_steps(rule: str, case: Case) -> list:
    """Weights and states after csr_t_dense and then the lazy update."""
    arrays, batch, numbers = parts_of(rule, "fused", get(f"{rule}_fused").arguments(case))
    columns, segments, rows, values, g = batch
    gradient = np.empty((columns.size, g.shape[1]), g.dtype)
    get("csr_t_dense").cpu(segments, rows, values, g, gradient)
    return run(get(f"{rule}_lazy").cpu, (*arrays, columns, gradient, *numbers))[: len(arrays)]


@pytest.mark.parametrize(
    ("rule", "case"),
    [
        *((rule, case) for rule in DISTINCT for case in (*SHAPES.values(), WIDE)),
        *((rule, SHAPES["width 33"]) for rule in OTHERS),
        *(pytest.param(rule, SHAPES[name], marks=pytest.mark.exhaustive) for rule in OTHERS for name in MORE_SHAPES),
    ],
    ids=[
        *(f"{rule}-{name}" for rule in DISTINCT for name in (*SHAPES, "width 513")),
        *(f"{rule}-width 33" for rule in OTHERS),
        *(f"{rule}-{name}" for rule in OTHERS for name in MORE_SHAPES),
    ],
)
def test_fused_step_is_the_gradient_and_the_lazy_update(rule: str, case: Case) -> None:
    kernel = get(f"{rule}_fused")
    came = run(kernel.cpu, kernel.arguments(case))[: len(kernel.writes)]
    assert_close(case, came, two_steps(rule, case))


@needs_two
@every_rule
@pytest.mark.usefixtures("many_parts")
def test_fused_step_has_the_same_bits_on_one_thread_and_on_two(rule: str) -> None:
    kernel, case = get(f"{rule}_fused"), sorted_case(random_case(300, 90, 4000, 3))
    args = kernel.arguments(case)
    threads.set_threads(1)
    one = run(kernel.cpu, args)
    threads.set_threads(2)
    assert same_bits(one, run(kernel.cpu, args))


@every_rule
def test_rows_that_no_column_touches_keep_their_bits(rule: str) -> None:
    kernel, case = get(f"{rule}_fused"), random_case(6, 5000, 40, 3)
    args = kernel.arguments(case)
    after = copies(args)
    kernel.cpu(*after)
    untouched = np.setdiff1d(np.arange(case.D), case.indices)
    for before, now in zip(args[: len(kernel.writes)], after, strict=False):
        assert same_bits([before[untouched]], [now[untouched]])


def test_ftrl_sets_weights_under_the_penalty_to_exactly_zero() -> None:
    kernel = get("ftrl_dense")
    args = list(copies(kernel.arguments(random_case(5, 200, 20, 16))))
    args[-3] = 0.8  # l1
    kernel.cpu(*args)
    weights, linear = args[:2]
    assert 0.1 < np.mean(weights == 0) < 0.9
    assert ((weights == 0) == (np.abs(linear) <= np.float32(0.8))).all()


STEP_BY_STEP = [rule for rule in RULES if get_rule(rule).step_by_step]
CLOSED_FORM = [rule for rule in RULES if get_rule(rule).closed_form]


def dense_steps(rule: str, arrays: tuple, numbers: dict, rates: list[float]) -> list:
    """Weights and states after steps without gradient at these rates, by the dense kernel."""
    after = copies(arrays)
    for number, rate in enumerate(rates):
        now = numbers | {"learning_rate": rate} | ({"step": 1 + number} if "step" in numbers else {})
        get(f"{rule}_dense").cpu(*after, np.zeros_like(after[0]), *now.values())
    return list(after)


@pytest.mark.covering
@pytest.mark.parametrize("width", [1, 3, 40])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rule", STEP_BY_STEP)
def test_replay_has_the_bits_of_the_steps_that_it_repeats(rule: str, dtype: type, width: int) -> None:
    case = random_case(30, 9, 200, width, dtype=dtype)
    arrays, _, numbers = parts_of(rule, "dense", get(f"{rule}_dense").arguments(case))
    numbers, rates = named(rule, numbers), [0.1, 0.3, 0.2, 0.25]
    steps = [
        numbers | {"learning_rate": rate} | ({"step": 1 + t} if "step" in numbers else {})
        for t, rate in enumerate(rates)
    ]
    table = np.array([get_rule(rule).settings(*step.values()) for step in steps]).astype(dtype)
    came = copies(arrays)
    get(f"{rule}_step_by_step").cpu(*came, np.array([1, 4, 7]), np.array([0, 4, 2]), table)
    expected = dense_steps(rule, arrays, numbers, rates)
    for one, before, all_steps in zip(came, arrays, expected, strict=True):
        assert same_bits([one[1]], [all_steps[1]])
        assert same_bits([np.delete(one, [1, 7], 0)], [np.delete(before, [1, 7], 0)])


@pytest.mark.parametrize("rule", CLOSED_FORM)
def test_steps_without_gradient_are_the_product_of_their_matrices(rule: str) -> None:
    case = random_case(30, 9, 200, 5, dtype=np.float64)
    arrays, _, numbers = parts_of(rule, "dense", get(f"{rule}_dense").arguments(case))
    numbers, rates = named(rule, numbers), list(np.linspace(0.1, 0.5, 23))
    if rule == "rmsprop":
        numbers |= {"decay": 0.0, "clip_weights": np.inf}
    spans = Spans()
    for rate in rates:
        spans.append(
            get_rule(rule).closed_form(*get_rule(rule).settings(*(numbers | {"learning_rate": rate}).values()))
        )
    columns = len(get_rule(rule).closed_form(*get_rule(rule).settings(*numbers.values())))
    matrix, came = spans.products(np.zeros(9, np.int64), columns), copies(arrays)
    if columns == 1:
        get("closed_form").cpu(came[0], np.arange(9), matrix[:, 0])
    else:
        get("closed_form_pair").cpu(*came, np.arange(9), matrix)
    for one, other in zip(came, dense_steps(rule, arrays, numbers, rates), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-13)


def test_rmsprop_with_decay_has_no_closed_form() -> None:
    rule = get_rule("rmsprop")
    assert rule.closed_form(*rule.settings(*rule.example)) is None


@pytest.mark.parametrize("rows", [0, 1, 20, 300])
@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 200])
def test_products_over_spans_are_those_of_numpy(count: int, diagonal: bool, rows: int) -> None:
    matrices = np.random.default_rng(count).uniform(-1, 1, (count, 4)) * ([1, 0, 0, 1] if diagonal else 1)
    matrices[count // 2] = 0, 0, 0, 1  # undoes what came before, and is no divisor
    spans = Spans()
    for matrix in matrices:
        spans.append(tuple(matrix))
    since = np.random.default_rng(0).integers(0, count + 1, rows)
    came = spans.products(since, 4)
    if diagonal:
        np.testing.assert_allclose(spans.products(since, 1), came[:, :1], rtol=1e-12)
    for first, one in zip(since, came, strict=True):
        expected = np.eye(2)
        for matrix in matrices[first:]:
            expected = matrix.reshape(2, 2) @ expected
        np.testing.assert_allclose(one.reshape(2, 2), expected, rtol=1e-10, atol=1e-14)


def test_products_of_numbers_do_not_underflow_before_their_time() -> None:
    spans = Spans()
    for _ in range(5000):
        spans.append((0.5,))
    np.testing.assert_array_equal(spans.products(np.array([4990, 0]), 1), [[2.0**-10], [0.0]])


def test_stale_rows_are_taken_once() -> None:
    last = np.array([3, 5, 0, 5, 2])
    stale, since = take_stale(last, np.array([2, 1, 2, 0]), 5, 6)
    assert (stale.tolist(), since.tolist()) == ([2, 0], [0, 3])
    assert last.tolist() == [6, 6, 6, 5, 2]


def test_closed_form_pair_refuses_a_matrix_of_another_size() -> None:
    weights, state, rows, _ = get("closed_form_pair").arguments(random_case(5, 9, 20, 3))
    with pytest.raises(KernelError, match="matrix has 3 columns; it has 4"):
        get("closed_form_pair").cpu(weights, state, rows, np.ones((rows.size, 3), np.float32))
