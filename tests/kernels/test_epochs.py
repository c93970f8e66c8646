"""Epochs in one call: for any loss and any rule what the definition says, on one thread and on two."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import kernels
from kernels import Case, Kernel, KernelError, Sizes, choosing, epochs, threads
from kernels.epochs import calls, dense, dense_table, touched
from kernels.loss_blocks import block_of
from kernels.rules import steps
from kernels.rules.rule import get_rule
from tests.support.cases import CASES, from_rows, random_case, sorted_case
from tests.support.implementations import assert_close, assert_inputs_unchanged, copies, run, same_bits, strided
from tests.support.thread_counts import TWO_AT_MOST, share_out

RULES = ("adamw", "centered_rmsprop", "group_adagrad", "nesterov", "rmsprop", "signum")
"""Next to adagrad, which most tests have, and those of `WAYS` that step the active rows alone."""
LIKE_OTHERS = ("adamw", "group_adagrad", "nesterov", "rmsprop", "signum")
"""Rules that have as many states as another one, or that tests of wide rows have; each compiles loops."""
ADVERSARIAL = (
    *("no rows", "no columns", "no entries", "one entry", "empty rows", "duplicates", "explicit zeros", "nan and inf"),
    *("full row", "full column", "sorted"),
)
"""Of one width, for each further one compiles loops of its own."""
WAYS = (
    ("sgd", "closed_form"),
    ("momentum", "closed_form_pair"),
    ("ftrl", "last_step"),
    ("adam", "step_by_step"),
    ("adagrad", "standard"),
    ("group_adagrad", "standard"),
)
WIDTHS = (pytest.param("narrow", marks=pytest.mark.exhaustive), "width 33", "64 bits, narrow")
"""One output is that of the last too, and of a test of threads."""
ROWS_OF = {"sgd": "empty rows", "ftrl": "plain", **dict.fromkeys(("momentum", "adam", "adagrad"), "duplicates")}
"""Of each rule the rows that it is tested on: each rule has a loop for each way to sum them, and those of sgd are
summed as batches of one row are."""
CLIPPED = (("adam", "step_by_step"), ("adagrad", "standard"))
"""Rows that catch up, and all rows stepped: each further rule compiles a loop for settings with rescale and clip."""
LONG = pytest.mark.exhaustive
sparse_and_dense = pytest.mark.parametrize("get", [epochs.get, dense.get], ids=["sparse", "dense"])
"""Tests of arguments, which the epochs of batches of both kinds take alike."""


def adversarial(name: str) -> Case:
    """The case of that name at width 3."""
    return replace(CASES[name], N=3)


@pytest.fixture(autouse=True)
def two_threads(kept_threads):
    threads.set_threads(TWO_AT_MOST)


@pytest.fixture
def tiny_work_is_parallel(monkeypatch: pytest.MonkeyPatch) -> None:
    share_out(monkeypatch)


def assert_as_defined(kernel: Kernel, case: Case, **changed: object) -> list:
    """Compare the twins; `changed` are arguments by name."""
    names = [name for name, _, _ in kernel.parsed]
    made = dict(zip(names, kernel.arguments(case), strict=True)) | changed
    args = tuple(made.values())
    came = run(kernel.cpu, args)
    assert_close(case, came, run(kernel.reference, args))
    assert_inputs_unchanged(kernel, args, came)
    return came


def unchanged(kernel: Kernel, case: Case) -> dict[str, np.ndarray]:
    """Settings that take the gradient as it is, for which trainings have the same compiled loops."""
    names = [name for name, _, _ in kernel.parsed]
    made = dict(zip(names, kernel.arguments(case), strict=True))
    tables = {name: made[name].copy() for name in ("settings", "settings_intercept")}
    for table in tables.values():
        table[:, -2:] = steps.UNCHANGED
    return tables


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_an_epoch_of_adversarial_rows_is_what_the_definition_says(name: str) -> None:
    assert_as_defined(epochs.get("logistic", "adagrad"), adversarial(name))


@pytest.mark.parametrize("name", WIDTHS)
def test_an_epoch_is_of_any_width_and_type(name: str) -> None:
    assert_as_defined(epochs.get("logistic", "adagrad"), CASES[name])


@pytest.mark.exhaustive  # tests of rules, of ways and of settings have these losses
@pytest.mark.parametrize("loss", ["squared", "softmax"])
def test_every_loss_has_its_epoch(loss: str) -> None:
    assert_as_defined(epochs.get(loss, "adagrad"), CASES["plain"])


@pytest.mark.parametrize(
    "rule", [pytest.param(rule, marks=pytest.mark.exhaustive if rule in LIKE_OTHERS else ()) for rule in RULES]
)
def test_every_rule_has_its_epoch(rule: str) -> None:
    assert_as_defined(epochs.get("squared", rule), CASES["width 2"])


def each_of_either(case: dict) -> set:
    """Return the targets of a case: its rule and its rows. Each pair of them may compile a loop."""
    return {case["rule"], case["name"]}


@pytest.mark.covering(targets=lambda case: {case["rule"]} if ROWS_OF.get(case["rule"]) == case["name"] else set())
@pytest.mark.parametrize(("rule", "way"), WAYS)
@pytest.mark.parametrize("name", ["duplicates", "empty rows", "plain"])
def test_every_way_treats_rows_that_are_not_touched_as_defined(name: str, rule: str, way: str) -> None:
    kernel, case = epochs.get("softmax", rule, way), adversarial(name)
    assert kernel.name == f"softmax_{rule}_epoch_{way}"
    assert_as_defined(kernel, case, **unchanged(kernel, case))


@pytest.mark.covering(targets=lambda case: each_of_either(case) if case["rule"] in ("sgd", "adam") else set())
@pytest.mark.parametrize(
    ("rule", "way"),
    [pytest.param(*way, marks=() if way[0] in ("sgd", "adam") else pytest.mark.exhaustive) for way in WAYS],
)
@pytest.mark.parametrize("name", ["duplicates", "empty rows", "plain"])
def test_every_way_has_batches_of_one_row(name: str, rule: str, way: str) -> None:
    kernel, case = epochs.get("softmax", rule, way), adversarial(name)
    assert_as_defined(kernel, sorted_case(case), batch_rows=1, **unchanged(kernel, case))


@pytest.mark.parametrize(("rule", "way"), [("sgd", "closed_form"), ("adagrad", "standard")])
@pytest.mark.usefixtures("tiny_work_is_parallel")
def test_every_way_has_the_same_bits_each_time_on_two_threads(rule: str, way: str) -> None:
    kernel, case = epochs.get("softmax", rule, way), random_case(60, 25, 400, 3)
    one, other = (assert_as_defined(kernel, case, batch_rows=17, **unchanged(kernel, case)) for _ in range(2))
    assert same_bits(one, other)


@pytest.mark.skipif(TWO_AT_MOST < 2, reason="this machine has one core")
@pytest.mark.parametrize(
    "case",
    [
        *(random_case(60, 25, 400, 3), random_case(60, 2000, 400, 1)),
        pytest.param(random_case(60, 9, 400, 40), marks=pytest.mark.exhaustive),
    ],
)
def test_threads_that_execute_the_parts_change_no_bit(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = epochs.get("softmax" if case.N > 1 else "logistic", "adagrad")
    with threads.parallel():
        shared = assert_as_defined(kernel, case, batch_rows=17)
    sides: list[int] = []

    def leaves(count: int, now: float) -> bool:
        sides.append(len(sides) % 2)
        return bool(sides[-1])

    monkeypatch.setattr(choosing, "load", SimpleNamespace(leaves=leaves))
    monkeypatch.setattr(threads, "SECONDS_PIECE", 1e-12)
    monkeypatch.setattr(calls, "is_serial", lambda work, within: False)
    monkeypatch.setattr(calls, "_gains", lambda *batch: True)
    assert same_bits(shared, assert_as_defined(kernel, case, batch_rows=17))
    assert set(sides) == {0, 1}


def test_batches_go_to_several_threads_where_these_gain() -> None:
    one, wide = np.zeros((10_000, 1), np.float32), np.zeros((10_000, 32), np.float32)
    assert calls._gains("dense_table", 20_000, one)
    assert not calls._gains("dense_table", 19_999, wide)  # the sums of the parts are added for every column
    few, narrow = calls.ENTRIES_DENSE_TABLE - 1, one[:3000]
    assert not calls._gains("dense_table", few, narrow, is_in_place=True)  # one thread steps the entries at once
    assert calls._gains("dense_table", few + 1, narrow, is_in_place=True)
    assert calls._gains("dense_table", few, wide[:3000], is_in_place=True)
    assert not calls._gains("hash_list", 10**6, one)
    assert calls._gains("hash_list", 1_000, wide)
    assert calls._gains("in_place", 1_000, wide)
    assert not calls._gains("in_place", 10**6, wide[:, :31])
    assert calls._gains("hash_sort", 1_000, wide)


def test_weights_that_are_far_are_asked_for_where_rows_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "cache_bytes", lambda level: 0)
    kernel, rule = epochs.get("logistic", "adagrad"), get_rule("adagrad")

    def asks(entries: int, batch_rows: int, is_in_place: bool = False, sums: str = "dense_table") -> bool:
        case = random_case(10, 500, 10 * entries, 1)
        names = [name for name, _, _ in kernel.parsed]
        made = dict(zip(names, kernel.arguments(case), strict=True)) | {"batch_rows": batch_rows}
        return calls._is_far(calls.Call.of(rule, "lazy", tuple(made.values())), is_in_place, sums)[1]

    monkeypatch.setattr(calls, "gathers_by_loads", lambda: True)
    assert asks(calls.FEW_ENTRIES - 1, 3)
    assert not asks(calls.FEW_ENTRIES, 3)
    assert asks(calls.FEW_ENTRIES, 1)
    assert asks(calls.FEW_ENTRIES, 3, is_in_place=True)
    assert not asks(calls.FEW_ENTRIES_AT_ONCE, 1)
    assert asks(calls.FEW_ENTRIES, 3, sums="dense_list")
    monkeypatch.setattr(calls, "gathers_by_loads", lambda: False)
    assert not asks(calls.FEW_ENTRIES, 3, sums="dense_list")


def test_a_way_or_steps_that_there_are_not_are_refused() -> None:
    with pytest.raises(
        KernelError,
        match=r"Unknown strategy of an epoch of sgd 'step_by_step'.*Expected one of: lazy, standard, closed_form",
    ):
        epochs.get("softmax", "sgd", "step_by_step")
    kernel = epochs.get("softmax", "sgd", "closed_form")
    with pytest.raises(KernelError, match=r"missed is \[4, 4\], for steps from 2 on; .* ask for 8 steps of 4 numbers"):
        assert_as_defined(kernel, CASES["plain"], missed=np.zeros((4, 4)))
    with pytest.raises(KernelError, match="last"):
        assert_as_defined(kernel, CASES["plain"], last=np.zeros(3, np.int64))


def test_the_tests_leave_no_rule_out() -> None:
    known = {name.removesuffix("_lazy") for name in kernels.names() if name.endswith("_lazy")}
    assert {*RULES, "adagrad", *(rule for rule, way in WAYS if way != "standard")} == known


@pytest.mark.parametrize("name", ["duplicates", "sorted", "empty rows"])
def test_batches_of_one_row_are_online_training(name: str) -> None:
    assert_as_defined(epochs.get("logistic", "adagrad"), adversarial(name), batch_rows=1)


def rows_that_grow(dtype: type, longest: int = 40, columns: int = 90) -> Case:
    """Rows of 0, 1, .. `longest` - 1 entries in columns that rise, for one output."""
    random = np.random.default_rng(4)
    held = [np.sort(random.choice(columns, length, replace=False)) for length in range(longest)]
    rows = np.repeat(np.arange(longest), np.arange(longest))
    return from_rows(rows, np.concatenate(held), longest, columns, 1, dtype=dtype)


@pytest.mark.parametrize(
    ("batch_rows", "dtype"),
    [
        (1, np.float32),
        (4, np.float64),
        *(pytest.param(*pair, marks=LONG) for pair in ((1, np.float64), (4, np.float32))),
    ],
)
def test_single_elements_are_stepped_for_every_count_of_columns(batch_rows: int, dtype: type) -> None:
    assert_as_defined(epochs.get("logistic", "adagrad"), rows_that_grow(dtype), batch_rows=batch_rows)


def test_rows_after_one_whose_columns_repeat_are_summed(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, make = [], calls.make_serial
    summed = lambda *kind: lambda *given: begun.append(given[-1]) or make(*kind)(*given)  # noqa: E731
    monkeypatch.setattr(calls, "make_serial", summed)
    case = rows_that_grow(np.float32)
    kernel, order = epochs.get("logistic", "adagrad"), np.arange(case.R)
    assert_as_defined(kernel, case, batch_rows=1, order=order)
    assert begun == []
    case.indices[case.indptr[7] + 3] = case.indices[case.indptr[7] + 2]
    assert_as_defined(kernel, case, batch_rows=1, order=order)
    assert begun == [7]


@pytest.mark.parametrize("loss", ["logistic", "softmax"])
@pytest.mark.usefixtures("tiny_work_is_parallel")
def test_two_threads_do_what_the_definition_says_with_the_same_bits_each_time(loss: str) -> None:
    kernel, case = epochs.get(loss, "adagrad"), random_case(60, 25, 400, 3)
    one, other = (assert_as_defined(kernel, case, batch_rows=17) for _ in range(2))
    assert same_bits(one, other)


@pytest.mark.parametrize("serial", [False, None])
@pytest.mark.parametrize(("entries", "features"), [(400, 25), (1500, 8200)])
def test_sums_at_places_of_columns_have_the_bits_of_sums_that_are_listed(
    entries: int, features: int, serial: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    share_out(monkeypatch, serial)
    kernel, case = epochs.get("logistic", "adagrad"), random_case(60, features, entries, 3)
    assert dense_table.suits(entries * 17 // 60, features, 3)
    at_places = assert_as_defined(kernel, case, batch_rows=17)
    monkeypatch.setattr(dense_table, "suits", lambda *sizes: False)
    assert same_bits(at_places, assert_as_defined(kernel, case, batch_rows=17))


WIDE = 67
"""Numbers a row whose gradient is summed column by column."""


@pytest.fixture
def by_column(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few columns are no reason to sum wide rows at their places."""
    monkeypatch.setattr(dense_table, "suits", lambda *sizes: False)


@pytest.mark.parametrize("name", ADVERSARIAL)
@pytest.mark.usefixtures("by_column")
def test_wide_rows_are_summed_column_by_column_as_the_definition_says(name: str) -> None:
    assert touched.suits(WIDE, 4)
    assert_as_defined(epochs.get("softmax", "adagrad"), replace(CASES[name], N=WIDE))


@pytest.mark.parametrize(
    ("rule", "way"),
    [
        *(("adam", "step_by_step"), ("group_adagrad", "lazy")),
        pytest.param("adagrad", "standard", marks=pytest.mark.exhaustive),
    ],
)
@pytest.mark.usefixtures("by_column")
def test_wide_rows_have_every_way_of_an_epoch(rule: str, way: str) -> None:
    kernel, case = epochs.get("softmax", rule, way), replace(CASES["duplicates"], N=WIDE)
    assert_as_defined(kernel, case, **unchanged(kernel, case))


@pytest.mark.parametrize("name", ["plain", "duplicates"])
def test_wide_rows_of_few_columns_are_summed_at_their_places(name: str) -> None:
    kernel, case = epochs.get("softmax", "adagrad"), replace(CASES[name], N=WIDE)
    assert_as_defined(kernel, case, **unchanged(kernel, case))


@pytest.mark.usefixtures("by_column")
def test_wide_rows_have_the_same_bits_on_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, case = epochs.get("softmax", "adagrad"), random_case(60, 25, 400, WIDE)
    alone = assert_as_defined(kernel, case, batch_rows=17)
    share_out(monkeypatch)
    together = assert_as_defined(kernel, case, batch_rows=17)
    assert same_bits(alone[1:], together[1:])  # the first are losses, which the threads add up


def test_sums_have_places_where_columns_are_few_for_the_entries_of_a_batch() -> None:
    assert dense_table.suits(entries=1024, columns=touched.DIRECT, width=1)
    assert not dense_table.suits(entries=1024, columns=touched.DIRECT, width=2)
    assert not dense_table.suits(entries=10, columns=touched.DIRECT, width=1)
    assert dense_table.suits(entries=touched.DIRECT, columns=touched.DIRECT, width=4)


@pytest.mark.parametrize("serial", [False, None])
def test_columns_are_found_in_a_small_table_too(serial: bool | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(touched, "DIRECT", 0)
    share_out(monkeypatch, serial)
    case = random_case(40, 5000, 300, 3)
    assert touched.hashing_for(5000, 40)[1] == 128
    assert_as_defined(epochs.get("logistic", "adagrad"), case, batch_rows=5)


def test_rows_counted_alike_and_no_intercept() -> None:
    kernel, case = epochs.get("logistic", "adagrad"), CASES["plain"]
    none = np.zeros(0, np.float32)
    assert_as_defined(kernel, case, counts=none, intercept=none, intercept_history=none)


def test_numbers_that_change_nothing_are_left_out() -> None:
    kernel, case = epochs.get("softmax", "adagrad"), CASES["plain"]
    settings = np.array([get_rule("adagrad").settings(0.1, 0.0, 1e-10, 1.0, np.inf)], np.float32)
    assert_as_defined(kernel, case, settings=settings, settings_intercept=settings)


def test_rows_from_beyond_the_cache_are_asked_for_and_computed_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, case = epochs.get("logistic", "adagrad"), random_case(60, 25, 400, 3)
    near = run(kernel.cpu, kernel.arguments(case))
    monkeypatch.setattr(calls, "cache_bytes", lambda level: 0)
    assert same_bits(near, run(kernel.cpu, kernel.arguments(case)))


@sparse_and_dense
def test_memory_layout_and_read_only_inputs_do_not_matter(get: Callable[..., Kernel]) -> None:
    kernel, case = get("logistic", "adagrad"), CASES["plain"]
    args = kernel.arguments(case)
    expected, gaps = run(kernel.cpu, args), tuple(map(strided, args))
    losses = kernel.cpu(*gaps)
    assert_close(case, [losses, *gaps], expected)
    locked = copies(args)
    for arg, (name, _, _) in zip(locked, kernel.parsed, strict=True):
        if isinstance(arg, np.ndarray) and name not in kernel.writes:
            arg.flags.writeable = False
    losses = kernel.cpu(*locked)
    assert_close(case, [losses, *locked], expected)


@pytest.mark.parametrize("serial", [False, True])
@sparse_and_dense
def test_a_batch_ends_with_its_epoch(get: Callable[..., Kernel], serial: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    share_out(monkeypatch, serial)
    kernel, case = get("logistic", "adagrad"), CASES["plain"]
    order = np.array([0, 3, 5, 6, 1, 2, 4, 6, 5, 4, 3, 2, 1, 0, 2, 2])  # two epochs of seven rows, and two rows more

    def trained(batch_rows: int, epoch_rows: int) -> list[np.ndarray]:
        came = assert_as_defined(kernel, case, order=order, batch_rows=batch_rows, epoch_rows=epoch_rows)
        return [one for one in came if isinstance(one, np.ndarray)]

    cut = trained(3, 7)
    assert cut[0].shape == (7,)
    assert not same_bits(cut[1:], trained(3, 100)[1:])
    assert same_bits(trained(100, 7), trained(7, 100))


@pytest.mark.parametrize(("rule", "way"), WAYS)
def test_a_batch_ends_with_its_epoch_whatever_becomes_of_other_rows(rule: str, way: str) -> None:
    kernel, case = epochs.get("softmax", rule, way), adversarial(ROWS_OF.get(rule, "duplicates"))
    settings = unchanged(kernel, case)  # the loops of other tests
    assert_as_defined(kernel, case, batch_rows=3, epoch_rows=4, **settings)


@pytest.mark.parametrize(
    ("rule", "way"),
    [pytest.param(*way, marks=() if way in CLIPPED else LONG) for way in WAYS],
)
def test_every_way_rescales_and_clips_gradients(rule: str, way: str) -> None:
    case = adversarial(ROWS_OF.get(rule, "duplicates"))
    assert_as_defined(epochs.get("squared", rule, way), case, batch_rows=3, epoch_rows=4)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("epoch_rows", 0, "batch_rows is 3, epoch_rows 0; a batch and an epoch have one row or more"),
        ("batch_rows", 0, "batch_rows is 0, epoch_rows 15; a batch and an epoch have one row or more"),
        ("counts", np.ones(3, np.float32), "counts has 3 numbers; it has one for each of 7 rows, or none"),
        ("settings", np.ones((0, 5), np.float32), "settings is [0, 5]; it has 5 numbers for one step or more"),
        ("order", np.array([0, 7]), "order"),
        ("targets", np.zeros((6, 3), np.float32), "targets has shape [6, 3]"),
    ],
)
@sparse_and_dense
def test_wrong_arguments_are_refused(get: Callable[..., Kernel], name: str, value: object, text: str) -> None:
    with pytest.raises(KernelError) as refused:
        assert_as_defined(get("logistic", "adagrad"), CASES["plain"], **{name: value})
    assert text in str(refused.value)


@pytest.mark.parametrize("serial", [False, None])
@sparse_and_dense
def test_a_label_out_of_range_ends_the_epoch_and_is_named(
    get: Callable[..., Kernel], serial: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    share_out(monkeypatch, serial)
    labels, kernel, case = np.array([0, 1, 2, 0, 3, 1, 2]), get("softmax", "adagrad"), CASES["plain"]
    settings = {} if get is epochs.get and serial is False else unchanged(kernel, case)  # the loops of other tests
    with pytest.raises(KernelError, match=r"labels\[4\] is 3; scores have 3 columns"):
        assert_as_defined(kernel, case, targets=labels, order=np.arange(7), **settings)


def test_names_that_there_are_not_are_told_with_those_there_are() -> None:
    with pytest.raises(
        KernelError, match=r"Unknown loss of some rows 'hinge'.*Expected one of: logistic, softmax, squared"
    ):
        epochs.get("hinge", "sgd")
    with pytest.raises(KernelError, match="Unknown kernel 'newton_dense'"):
        epochs.get("squared", "newton")
    assert block_of("squared") is block_of("squared")


def test_the_cost_is_that_of_a_batch() -> None:
    cost = epochs.get("squared", "sgd").cost(Sizes(R=50, z=700, D=90, N=6, U=80))
    assert cost.flops == 4 * 700 * 6 + 4 * 50 * 6 + 7 * 80 * 6
    assert cost.bytes_compulsory == 700 * 8 + 51 * 4 + 50 * 6 * 4 + 80 * 2 * 6 * 4


def test_a_second_call_compiles_nothing() -> None:
    kernel = epochs.get("logistic", "adagrad")
    kernel.cpu(*kernel.arguments(CASES["plain"]))
    loop = calls.make_serial(calls.programs_for("adagrad", 3, 4, 5), "logistic", "dense_table")
    before = len(loop.signatures)
    kernel.cpu(*kernel.arguments(random_case(13, 17, 70, 3, seed=2)))
    assert len(loop.signatures) == before == 1
