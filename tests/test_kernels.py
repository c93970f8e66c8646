"""Every registered kernel on every hostile case: a new kernel is tested by being registered."""

import re
import sys

import numba
import numpy as np
import pytest
import scipy.sparse
from cases import CASES, random_case
from numba.core.dispatcher import Dispatcher

import kernels
from kernels import Case, Kernel, KernelError, Sizes, plan, threads

NAMES = kernels.names()
OURS = [name for name in NAMES if "." not in name]
every_kernel = pytest.mark.parametrize("name", NAMES)
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


@pytest.fixture
def tiny_work_is_parallel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "SERIAL_WORK", 1)


@pytest.fixture(autouse=True)
def two_threads():
    before = threads.get_threads()
    threads.set_threads(min(2, numba.config.NUMBA_NUM_THREADS))
    yield
    threads.set_threads(before)


def get(name: str) -> Kernel:
    kernel = kernels.get(name)
    if kernel.cpu is None:
        pytest.skip(f"{name}: {kernel.unavailable}")
    return kernel


def copies(args: tuple) -> tuple:
    return tuple(arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args)


def run(function, args: tuple) -> list:
    """Call on copies; the result's parts, then every argument as the call left it."""
    args = copies(args)
    with np.errstate(all="ignore"):
        result = function(*args)
    parts = result if isinstance(result, tuple) else () if result is None else (result,)
    return [*parts, *args]


def same_bits(one: list, other: list) -> bool:
    return all(
        np.array_equal(np.asarray(a), np.asarray(b), equal_nan=np.asarray(a).dtype.kind == "f")
        and np.asarray(a).dtype == np.asarray(b).dtype
        and np.asarray(a).tobytes() == np.asarray(b).tobytes()
        for a, b in zip(one, other, strict=True)
    )


def allowed_error(case: Case, expected: np.ndarray) -> dict:
    """Rounding of the longest sum that the case can make, twice: the reference rounds as well."""
    finite = np.abs(expected[np.isfinite(expected)])
    eps = np.finfo(case.dtype).eps * 2 * max(case.indices.size, case.D, case.R, 8)
    return {"rtol": eps, "atol": eps * max(finite.max(initial=0), 1e-3)}


def assert_close(case: Case, came: list, expected: list) -> None:
    for one, other in zip(came, expected, strict=True):
        assert type(one) is type(other)
        one, other = np.asarray(one), np.asarray(other)
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        if one.dtype.kind == "f":
            np.testing.assert_allclose(one, other, **allowed_error(case, other))
        else:
            np.testing.assert_array_equal(one, other)


def assert_inputs_unchanged(kernel: Kernel, before: tuple, after: list) -> None:
    for (name, kind, _), old, new in zip(kernel.parsed, before, after[-len(before) :], strict=True):
        if kind != "s" and name not in kernel.writes:
            assert old.tobytes() == new.tobytes(), f"{kernel.name} changed {name}"


def strided(array: object) -> object:
    """The same values with gaps in memory."""
    if not isinstance(array, np.ndarray):
        return array
    roomy = np.full([2 * length + 1 for length in array.shape], 99, array.dtype)
    view = roomy[tuple(slice(1, None, 2) for _ in array.shape)]
    view[...] = array
    return view


@every_case
@every_kernel
def test_twin_computes_what_the_reference_defines(name: str, case: Case) -> None:
    kernel = get(name)
    args = kernel.arguments(case)
    came = run(kernel.cpu, args)
    assert_close(case, came, run(kernel.reference, args))
    assert_inputs_unchanged(kernel, args, came)


@every_case
@pytest.mark.parametrize("name", OURS)
@pytest.mark.usefixtures("tiny_work_is_parallel")
def test_same_bits_at_every_thread_count_and_on_every_run(name: str, case: Case) -> None:
    kernel = get(name)
    args = kernel.arguments(case)
    two, again = run(kernel.cpu, args), run(kernel.cpu, args)
    threads.set_threads(1)
    assert same_bits(two, again)
    assert same_bits(two, run(kernel.cpu, args))
    assert_inputs_unchanged(kernel, args, two)


@pytest.mark.parametrize("case_name", ["plain", "narrow", "width 33", "64 bits"])
@every_kernel
def test_memory_layout_and_read_only_inputs_do_not_matter(name: str, case_name: str) -> None:
    kernel, case = get(name), CASES[case_name]
    args = kernel.arguments(case)
    expected = run(kernel.cpu, args)
    gaps = tuple(map(strided, args))
    result = kernel.cpu(*gaps)
    parts = result if isinstance(result, tuple) else () if result is None else (result,)
    assert_close(case, [*parts, *gaps], expected)

    locked = copies(args)
    for arg, (parameter, _, _) in zip(locked, kernel.parsed, strict=True):
        if isinstance(arg, np.ndarray) and parameter not in kernel.writes:
            arg.flags.writeable = False
    result = kernel.cpu(*locked)
    parts = result if isinstance(result, tuple) else () if result is None else (result,)
    assert_close(case, [*parts, *locked], expected)


@every_kernel
def test_nan_and_inf_go_where_the_reference_puts_them(name: str) -> None:
    kernel, case = get(name), CASES["width 5"]
    args = copies(kernel.arguments(case))
    for arg, (_, kind, _) in zip(args, kernel.parsed, strict=True):
        if kind == "f":
            arg.flat[[0, arg.size // 2, -1]] = np.nan, -np.inf, np.inf
    assert_close(case, run(kernel.cpu, args), run(kernel.reference, args))


def overwritten(kernel: Kernel) -> tuple[str, ...]:
    """Parameters whose old content plays no part, by the header's own word."""
    header = sys.modules[kernel.reference.__module__].__doc__
    return kernel.writes if "overwritten" in re.search(r"^Writes .*", header, re.M).group() else ()


@every_kernel
def test_every_parameter_matters_and_old_output_does_not(name: str) -> None:
    kernel, case = get(name), CASES["plain"]
    args = kernel.arguments(case)
    before = run(kernel.cpu, args)
    for position, (parameter, kind, _) in enumerate(kernel.parsed):
        if kind in "il":
            continue
        changed = list(copies(args))
        old = args[position]
        changed[position] = old * 2 + 1 if kind == "f" else old + 1 if isinstance(old, int) else old * 1.125
        after = run(kernel.cpu, tuple(changed))
        kept = [k for k in range(len(before)) if k != len(before) - len(args) + position]
        differs = not same_bits([before[k] for k in kept], [after[k] for k in kept])
        if parameter in kernel.writes:
            differs = differs or not same_bits(before, after)
        assert differs == (parameter not in overwritten(kernel)), f"{name}: {parameter}"


def arrays_of(kernel: Kernel, args: tuple) -> list[tuple[int, str]]:
    return [(position, kernel.parsed[position][0]) for position, arg in enumerate(args) if isinstance(arg, np.ndarray)]


@every_kernel
def test_wrong_arguments_are_refused_by_name(name: str) -> None:
    kernel = get(name)
    args = kernel.arguments(CASES["plain"])
    for position, parameter in arrays_of(kernel, args):
        for wrong, word in (
            (args[position].tolist(), "must be a numpy array, not list"),
            (args[position][None], "axes"),
            (args[position].astype(np.int16), f"{parameter}.astype"),
        ):
            call = [*args[:position], wrong, *args[position + 1 :]]
            with pytest.raises(KernelError, match=rf"^{re.escape(name)}: {parameter} .*{re.escape(word)}"):
                kernel.cpu(*call)
    with pytest.raises(KernelError, match=rf"^{re.escape(name)} takes {len(args)} arguments"):
        kernel.cpu(*args, 1)


@every_kernel
def test_lengths_that_disagree_are_refused(name: str) -> None:
    kernel = get(name)
    args = kernel.arguments(CASES["plain"])
    letters = [letter for _, _, axes in kernel.parsed for letter, _ in axes]
    for position, _ in arrays_of(kernel, args):
        for axis, (letter, _) in enumerate(kernel.parsed[position][2]):
            if letters.count(letter) > 1:
                call = list(args)
                call[position] = np.concatenate((args[position], args[position]), axis)
                with pytest.raises(KernelError, match=rf"^{re.escape(name)}: .* but [A-Za-z]+ is \d+"):
                    kernel.cpu(*call)


@pytest.mark.parametrize("name", [name for name in OURS if kernels.get(name).writes])
def test_read_only_output_is_refused(name: str) -> None:
    kernel = get(name)
    args = kernel.arguments(CASES["plain"])
    for position, parameter in arrays_of(kernel, args):
        if parameter in kernel.writes:
            args[position].flags.writeable = False
            with pytest.raises(KernelError, match="read-only; pass a writable one"):
                kernel.cpu(*args)
            args[position].flags.writeable = True


def compiled_versions() -> int:
    """Specialisations of all compiled functions of the kernels together."""
    modules = [module for key, module in sys.modules.items() if key.split(".")[0] == "kernels"]
    functions = {id(f): f for module in modules for f in vars(module).values() if isinstance(f, Dispatcher)}
    return sum(map(threads.specializations, functions.values()))


@pytest.mark.parametrize("name", OURS)
@pytest.mark.usefixtures("tiny_work_is_parallel")
def test_second_call_compiles_nothing(name: str) -> None:
    kernel = get(name)
    kernel.cpu(*kernel.arguments(random_case(9, 12, 40, 4)))
    before = compiled_versions()
    kernel.cpu(*kernel.arguments(random_case(13, 17, 70, 6, seed=2)))
    kernel.cpu(*map(strided, kernel.arguments(random_case(9, 12, 40, 4))))
    assert compiled_versions() == before


def test_count_of_versions_sees_a_new_one() -> None:
    get("csr_dense").cpu(*get("csr_dense").arguments(CASES["plain"]))
    before = compiled_versions()
    plan._row_of_entry(np.array([0, 1], np.int16), np.zeros(1, np.int16))
    assert compiled_versions() == before + 1


@pytest.mark.parametrize("name", ["coo_to_csr", "csr_to_csc", "dense_to_csr", "slice_rows"])
def test_indices_become_int64_where_int32_is_too_narrow(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "INT32_LIMIT", 8)
    kernel, case = get(name), CASES["plain"]
    args = kernel.arguments(case)
    came = run(kernel.cpu, args)
    assert came[0].dtype == came[1].dtype == np.int64
    assert_close(case, came, run(kernel.reference, args))


SIZES = Sizes(R=50, z=700, D=90, N=6, U=80)


@every_kernel
def test_cost_is_what_the_header_declares(name: str) -> None:
    kernel = kernels.get(name)
    cost = kernel.cost(SIZES)
    line = re.search(r"^Cost .*", sys.modules[kernel.reference.__module__].__doc__, re.M).group()
    if declared := re.search(r"([\w*]+) flops", line):
        factors = declared.group(1).replace("no", "0").split("*")
        flops = np.prod([int(factor) if factor.isdigit() else getattr(SIZES, factor) for factor in factors])
        if "a row:" in line:
            flops *= SIZES.U if name.endswith("lazy") else SIZES.D
        assert cost.flops == flops
    wider = kernel.cost(Sizes(R=50, z=700, D=90, N=6, U=80, value=8, index=8))
    double = kernel.cost(Sizes(R=100, z=1400, D=180, N=12, U=160))
    assert 0 < cost.bytes_compulsory < wider.bytes_compulsory <= 2 * cost.bytes_compulsory
    assert double.bytes_compulsory > 1.9 * cost.bytes_compulsory
    assert double.flops >= 2 * cost.flops >= 0


# From here on: what the references themselves are held to.


@pytest.mark.parametrize("name", ["squared", "logistic", "softmax"])
def test_loss_gradient_is_the_slope_of_the_loss(name: str) -> None:
    kernel = get(name)
    scores, target, gradient = kernel.arguments(random_case(4, 5, 6, 3, dtype=np.float64, index=np.int64))
    scores = scores / 10
    kernel.cpu(scores, target, gradient)
    for place in np.ndindex(scores.shape):
        step = np.zeros_like(scores)
        step[place] = 1e-6
        above, below = (kernel.cpu(scores + sign * step, target, gradient.copy()) for sign in (1, -1))
        assert (above - below) / 2e-6 == pytest.approx(gradient[place], abs=1e-8)


@pytest.mark.parametrize("label", [-1, 3, 2**40])
def test_softmax_refuses_a_label_without_a_column(label: int) -> None:
    scores, labels = np.zeros((4, 3), np.float32), np.array([0, 1, label, 2])
    with pytest.raises(KernelError, match=rf"labels\[2\] is {label}; .* 0 to 2"):
        get("softmax").cpu(scores, labels, scores.copy())


def test_softmax_of_huge_scores_is_finite() -> None:
    scores, gradient = np.float32([[1e30, -1e30, 0], [-1e30, -1e30, -1e30]]), np.empty((2, 3), np.float32)
    assert get("softmax").cpu(scores, np.array([0, 1]), gradient) == pytest.approx(np.log(3) / 2)
    np.testing.assert_allclose(gradient, [[0, 0, 0], [1 / 6, -1 / 3, 1 / 6]], rtol=1e-6)


@pytest.mark.parametrize("rule", ["sgd", "adagrad", "adam"])
def test_lazy_step_equals_dense_step_where_the_header_says_so(rule: str) -> None:
    lazy, dense = get(f"{rule}_lazy"), get(f"{rule}_dense")
    case = random_case(5, 8, 30 if rule == "adam" else 6, 3, seed=4)
    args = list(copies(lazy.arguments(case)))
    rows, gradient = args[-2 - _numbers(lazy)], args[-1 - _numbers(lazy)]
    if rule == "adam":
        rows, gradient = np.arange(case.D), case.dense(case.D, 3)
    decay = _position(lazy, "decay")
    args[decay] = args[decay] if rule == "adam" else 0
    full = np.zeros((case.D, case.N), case.dtype)
    full[rows] = gradient
    state, numbers = args[: -2 - _numbers(lazy)], args[-_numbers(lazy) :]
    by_rows = run(lazy.cpu, (*state, rows, gradient, *numbers))
    at_once = run(dense.cpu, (*state, full, *numbers))
    for one, other in zip(by_rows[: len(state)], at_once[: len(state)], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def _numbers(kernel: Kernel) -> int:
    return sum(kind == "s" for _, kind, _ in kernel.parsed)


def _position(kernel: Kernel, parameter: str) -> int:
    return [name for name, _, _ in kernel.parsed].index(parameter)


def test_adam_counts_steps_from_one() -> None:
    args = get("adam_dense").arguments(CASES["plain"])
    with pytest.raises(KernelError, match="step is 0; it counts from 1"):
        get("adam_dense").cpu(*args[:-1], 0)


@every_case
def test_conversions_agree_with_scipy(case: Case) -> None:
    matrix = scipy.sparse.csr_array((case.data, case.indices, case.indptr), shape=(case.R, case.D))
    column = scipy.sparse.csc_array(matrix.tocoo() if case.R == 0 else matrix)
    row, col, data, n_rows = get("coo_to_csr").arguments(case)
    pieces = get("coo_to_csr").cpu(row, col, data, n_rows)
    assert pieces[0].tolist() == case.indptr.tolist()
    for ours, theirs in zip(
        get("csr_to_csc").cpu(case.indptr, case.indices, case.data, case.D),
        (column.indptr, column.indices, column.data),
        strict=True,
    ):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(get("csr_to_coo_rows").cpu(case.indptr), matrix.tocoo().row)


@pytest.mark.parametrize(("name", "word"), [("coo_to_csr", "row"), ("csr_to_csc", "column")])
@pytest.mark.parametrize("wrong", [-1, 99])
@pytest.mark.parametrize("work", [1, threads.SERIAL_WORK])
def test_grouping_refuses_a_number_out_of_range(name, word, wrong, work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "SERIAL_WORK", work)
    args = copies(get(name).arguments(random_case(3, 4, 40, 1)))
    args[0 if name == "coo_to_csr" else 1][7] = wrong
    with pytest.raises(KernelError, match=rf"Entry 7 has {word} {wrong}; allowed are 0 to"):
        get(name).cpu(*args)


@pytest.mark.parametrize("wrong", [-1, 7])
def test_slice_rows_refuses_a_row_that_is_not_there(wrong: int) -> None:
    *matrix, rows = get("slice_rows").arguments(CASES["plain"])
    rows[2] = wrong
    with pytest.raises(KernelError, match=rf"rows\[2\] is {wrong}; the matrix has the rows 0 to 6"):
        get("slice_rows").cpu(*matrix, rows)


def test_merge_rows_refuses_a_negative_index() -> None:
    with pytest.raises(KernelError, match="an index is -2; rows count from 0"):
        get("merge_rows").cpu(np.array([3, -2]), np.ones((2, 1)))


def test_scipy_routines_compute_what_its_operator_does() -> None:
    case = CASES["full row"]
    indptr, indices, data, x, out = get("scipy.csr_dense").arguments(case)
    matrix = scipy.sparse.csr_array((data, indices, indptr), shape=(case.R, case.D))
    get("scipy.csr_dense").cpu(indptr, indices, data, x, out)
    np.testing.assert_array_equal(out, matrix @ x)
    g, full = case.dense(case.R, case.N), case.garbage(case.D, case.N)
    get("scipy.csr_t_dense_full").cpu(indptr, indices, data, g, full)
    np.testing.assert_array_equal(full, matrix.T @ g)


def test_rivals_are_found_by_what_they_rival() -> None:
    assert [kernel.name for kernel in kernels.rivals_of("csr_dense")] == ["scipy.csr_dense"]
    assert kernels.rivals_of("softmax") == []
