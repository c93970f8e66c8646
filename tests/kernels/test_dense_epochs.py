"""Dense epochs in one call: for any loss, rule and way to hold X what the definition says, on one thread and on two."""

from dataclasses import replace

import numpy as np
import pytest

from kernels import Kernel, KernelError, Sizes, threads
from kernels.epochs import dense
from kernels.epochs.dense.loops import MOST_NARROW, make_loop, programs_for
from kernels.epochs.dense.sources import HALVES, SOURCES
from kernels.epochs.loops import compiled
from kernels.rules.rule import get_rule
from tests.kernels.test_epochs import ADVERSARIAL, RULES, WAYS, adversarial, assert_as_defined, unchanged
from tests.support.cases import CASES, random_case
from tests.support.implementations import run, same_bits
from tests.support.thread_counts import TWO_AT_MOST, share_out

fill_halves = HALVES.fill


@compiled
def fill(source, order, start, begin, end):
    """Call what is a part of compiled code."""
    fill_halves(source, order, start, begin, end)


MORE_WIDTHS = (16, MOST_NARROW, MOST_NARROW + 1, 33)
WIDTHS = (67, *(pytest.param(width, marks=pytest.mark.exhaustive) for width in MORE_WIDTHS))
"""Several tiles; tests of rules and of columns have both layouts, whole vectors and masked ones."""
FEW_RULES = ("adam", "group_adagrad")
"""Rules with correction of bias and with a state a row: each compiles a loop. Tests of widths have sgd, which has no
state, and those of adversarial rows adagrad, which has one."""
OTHER_RULES = sorted({*RULES, *(rule for rule, _ in WAYS)} - set(FEW_RULES))


@pytest.fixture(autouse=True)
def two_threads(kept_threads):
    threads.set_threads(TWO_AT_MOST)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a few rows, which batches of the tests have several of."""
    monkeypatch.setattr(dense, "cache_bytes", lambda level: 0)
    monkeypatch.setattr(dense, "LEAST_ROWS", 3)
    monkeypatch.setattr(dense, "ROWS_AN_OUTPUT", 0)


@pytest.fixture
def in_stripes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stripes of blocks of a few rows, whatever the size of a batch."""
    monkeypatch.setattr(dense, "suits", lambda *sizes: True)
    monkeypatch.setattr(dense, "rows_of_block", lambda rows, columns, itemsize, rows_at_once: rows_at_once)


def no_intercept(kernel: Kernel) -> dict[str, np.ndarray]:
    """Arguments of a training without intercept."""
    return {name: np.zeros(0, np.float32) for name, _, _ in kernel.parsed if name in ("counts", "intercept")}


STRIPED = {"dense": ("adagrad", 1), "csr": ("adagrad", 3), "float16": ("sgd", 20)}
"""For each storage of the rows, a rule and the width of its weights; each pair compiles a striped loop. uint8 is left
out, as it is widened like float16; the tests of adversarial rows have both."""
MORE_STRIPED = (("group_adagrad", 3), ("group_adagrad", 20))


def targets_of_stripes(case: dict) -> set:
    """Return the targets of a case: each size of a batch with each loop, which has one way to hold rows; no other case.

    Every loop compiles anew for each way to hold rows.
    """
    pair = case["held"], (case["rule"], case["width"])
    return {(case["batch_rows"], *pair)} if pair in STRIPED.items() else set()


RULE_OF_WIDTH = {3: "adagrad", 20: "sgd"}
"""Of widths with a loop of their own: rules whose loops other tests compile."""


@pytest.mark.parametrize("held", SOURCES)
@pytest.mark.parametrize("name", ADVERSARIAL)
def test_a_dense_epoch_of_adversarial_rows_is_what_the_definition_says(name: str, held: str) -> None:
    if held == "dense":
        assert_as_defined(dense.get("logistic", "adagrad", held), adversarial(name))
    else:  # loops that trainings have
        kernel, case = dense.get("softmax", "adagrad", held), adversarial(name)
        assert_as_defined(kernel, case, **unchanged(kernel, case))


@pytest.mark.covering(targets=lambda case: {case["name"]})
@pytest.mark.parametrize("held", SOURCES)
@pytest.mark.parametrize("name", [pytest.param("narrow", marks=pytest.mark.exhaustive), "64 bits, narrow"])
def test_a_dense_epoch_is_of_any_type(name: str, held: str) -> None:
    assert_as_defined(dense.get("logistic", "adagrad", held), CASES[name])


@pytest.mark.parametrize("width", WIDTHS)
def test_a_dense_epoch_is_of_any_width(width: int) -> None:
    assert_as_defined(dense.get("squared", "sgd"), replace(CASES["plain"], N=width))


@pytest.mark.parametrize("columns", [1, 15, 16, 17, 130, 300])
@pytest.mark.parametrize("width", [1, 20])
def test_a_dense_epoch_is_of_any_number_of_columns(columns: int, width: int) -> None:
    assert_as_defined(dense.get("squared", "sgd"), random_case(21, columns, 3 * columns, width), batch_rows=19)


@pytest.mark.parametrize("loss", [pytest.param("squared", marks=pytest.mark.exhaustive), "softmax", "logistic"])
@pytest.mark.parametrize("batch_rows", [1, 2, 100])
def test_every_loss_has_its_dense_epoch_of_any_batch(loss: str, batch_rows: int) -> None:
    kernel, case = dense.get(loss, "adagrad"), CASES["plain"]
    settings = unchanged(kernel, case) if loss == "softmax" else {}  # whose loop trainings have
    assert_as_defined(kernel, case, batch_rows=batch_rows, **settings)


@pytest.mark.parametrize(
    "rule", [*FEW_RULES, *(pytest.param(rule, marks=pytest.mark.exhaustive) for rule in OTHER_RULES)]
)
def test_every_rule_has_its_dense_epoch(rule: str) -> None:
    kernel, case = dense.get("squared", rule), replace(CASES["plain"], N=2)
    assert_as_defined(kernel, case, **({} if rule == "sgd" else unchanged(kernel, case)))


@pytest.mark.covering(targets=lambda case: {case["held"], case["width"]})
@pytest.mark.parametrize("held", ["dense", "csr"])
@pytest.mark.parametrize(("rule", "width"), [("adagrad", 3), ("group_adagrad", 3), ("sgd", 20)])
@pytest.mark.usefixtures("small_blocks")
def test_a_batch_of_several_blocks_has_one_step(width: int, rule: str, held: str) -> None:
    kernel, case = dense.get("softmax", rule, held), random_case(60, 25, 400, width)
    settings = unchanged(kernel, case) if rule == "adagrad" else {}
    assert_as_defined(kernel, case, batch_rows=17, **settings)


@pytest.mark.covering(targets=targets_of_stripes)
@pytest.mark.parametrize("held", SOURCES)
@pytest.mark.parametrize(("rule", "width"), [*STRIPED.values(), *MORE_STRIPED])
@pytest.mark.parametrize("batch_rows", [1, 45, 400])
@pytest.mark.usefixtures("in_stripes")
def test_a_batch_in_stripes_has_one_step(batch_rows: int, width: int, rule: str, held: str) -> None:
    loss = "logistic" if width == 1 else "softmax"
    assert_as_defined(dense.get(loss, rule, held), random_case(190, 25, 1400, width), batch_rows=batch_rows)


@pytest.mark.usefixtures("in_stripes")
def test_stripes_of_no_intercept_and_rows_counted_alike() -> None:
    kernel = dense.get("logistic", "adagrad")
    none = no_intercept(kernel) | {"intercept_history": np.zeros(0, np.float32)}
    assert_as_defined(kernel, random_case(90, 25, 700, 1), batch_rows=70, **none)


@pytest.mark.usefixtures("in_stripes")
def test_a_label_out_of_range_in_stripes_is_the_first_one_named() -> None:
    case = random_case(60, 25, 400, 3)
    labels = np.zeros(60, np.int64)
    labels[[31, 58]] = 3
    with pytest.raises(KernelError, match=r"labels\[31\] is 3; scores have 3 columns"):
        assert_as_defined(
            dense.get("softmax", "adagrad", "csr"), case, targets=labels, order=np.arange(60), batch_rows=60
        )


def test_whether_a_batch_is_cut_into_stripes_does_not_depend_on_threads() -> None:
    large = dense.suits(4096, 4096, 1, 4)
    threads.set_threads(1)
    assert large is dense.suits(4096, 4096, 1, 4) is True
    assert not dense.suits(4096, 4096, 64, 4)  # a stripe's gradient would exceed a cache
    assert not dense.suits(256, 64, 1, 4)  # a batch that a cache holds


THREADED = (("one block", 20, "dense"), ("small_blocks", 3, "dense"), ("in_stripes", 3, "csr"))
"""Kinds of blocks with a width and a way to hold rows, whose serial loops other tests compile: each compiles one more
loop for threads. Each kind of blocks is there and each width, not each with each."""


def targets_of_threads(case: dict) -> set:
    """Return the targets of a case: itself if it is one of `THREADED`."""
    return {(case["blocks"], case["width"], case["held"])} & set(THREADED)


@pytest.mark.covering(targets=targets_of_threads)
@pytest.mark.parametrize("held", ["dense", "csr", "float16"])
@pytest.mark.parametrize("width", [3, 20])
@pytest.mark.parametrize("blocks", ["one block", "small_blocks", "in_stripes"])
def test_weights_have_the_same_bits_on_any_number_of_threads(
    width: int, held: str, blocks: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if blocks != "one block":
        request.getfixturevalue(blocks)
    loss = "squared" if (width, blocks) == (20, "one block") else "softmax"  # whose serial loop tests of widths compile
    kernel, case = dense.get(loss, RULE_OF_WIDTH[width], held), random_case(90, 150, 1400, width)
    monkeypatch.setattr(dense, "LEAST_SHARED", 2)
    settings = unchanged(kernel, case) if blocks == "small_blocks" else {}  # as where the serial loop is compiled
    alone = assert_as_defined(kernel, case, batch_rows=37, **settings)
    share_out(monkeypatch)
    together = assert_as_defined(kernel, case, batch_rows=37, **settings)
    assert same_bits(alone[1:], together[1:])  # the first are losses, which the threads add up
    assert same_bits(together, assert_as_defined(kernel, case, batch_rows=37, **settings))


def test_rows_from_beyond_the_cache_are_asked_for_and_computed_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    for width in (3, 20):
        kernel, case = dense.get("softmax", RULE_OF_WIDTH[width]), random_case(60, 45, 400, width)
        names = [name for name, _, _ in kernel.parsed]
        made = dict(zip(names, kernel.arguments(case), strict=True))
        args = tuple((made | (unchanged(kernel, case) if width == 3 else {})).values())  # the loops of other tests
        near = run(kernel.cpu, args)
        monkeypatch.setattr(dense, "is_far", lambda held, x: True)
        assert same_bits(near, run(kernel.cpu, args))


def test_rows_counted_alike_and_no_intercept() -> None:
    for loss, rule, states in (("squared", "sgd", ()), ("logistic", "adagrad", ("intercept_history",))):
        kernel, case = dense.get(loss, rule), replace(CASES["plain"], N=20 if loss == "squared" else 3)
        assert_as_defined(kernel, case, **no_intercept(kernel), **dict.fromkeys(states, np.zeros(0, np.float32)))


def test_every_float16_is_widened_exactly() -> None:
    halves = np.arange(2**16, dtype=np.uint16)[np.isfinite(np.arange(2**16, dtype=np.uint16).view(np.float16))]
    halves = np.append(halves, np.float16([np.inf, -np.inf]).view(np.uint16)).reshape(1, -1)
    for dtype in (np.float32, np.float64):
        source = HALVES.prepare((halves,), np.arange(1), halves.size, 1, np.dtype(dtype))
        fill(source, np.arange(1), 0, 0, 1)
        np.testing.assert_array_equal(source[HALVES.table], halves.view(np.float16).astype(dtype))


def test_an_unknown_way_to_hold_rows_is_refused_with_the_known_ones() -> None:
    with pytest.raises(KernelError, match=r"Unknown way to hold dense rows 'parquet'. Expected one of: dense, csr"):
        dense.get("squared", "sgd", "parquet")
    with pytest.raises(KernelError, match="Unknown loss of some rows 'hinge'"):
        dense.get("hinge", "sgd")


def test_the_cost_is_that_of_a_dense_batch() -> None:
    sizes = Sizes(R=50, z=700, D=90, N=6, U=80)
    cost = dense.get("squared", "sgd").cost(sizes)
    assert cost.flops == 4 * 50 * 90 * 6 + 4 * 50 * 6 + 7 * 90 * 6
    assert cost.bytes_compulsory == 50 * 90 * 4 + 50 * 6 * 4 + 90 * 2 * 6 * 4
    held = dense.get("squared", "sgd", "csr").cost(sizes)
    assert held.bytes_compulsory == 700 * 8 + 51 * 4 + 50 * 6 * 4 + 90 * 2 * 6 * 4


def test_a_second_call_compiles_nothing() -> None:
    kernel = dense.get("logistic", "adagrad")
    kernel.cpu(*kernel.arguments(CASES["plain"]))
    count = len(get_rule("adagrad").settings(*get_rule("adagrad").example))
    loop = make_loop(programs_for("adagrad", 3, 4, count, False), "logistic", "dense", is_parallel=False)
    before = len(loop.signatures)
    kernel.cpu(*kernel.arguments(random_case(13, 17, 70, 3, seed=2)))
    assert len(loop.signatures) == before == 1
