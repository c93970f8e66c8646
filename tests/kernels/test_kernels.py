"""Every registered kernel on every adversarial case: a new kernel is tested by being registered."""

import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

import kernels
from kernels import Case, Kernel, KernelError, Sizes, plan, threads
from kernels.vector import gather
from tests.support.cases import CASES, random_case
from tests.support.implementations import (
    assert_close,
    assert_inputs_unchanged,
    copies,
    get,
    not_finite,
    run,
    same_bits,
    strided,
)
from tests.support.kernel_targets import loops_of, targets_in_parts, targets_of
from tests.support.thread_counts import TWO_AT_MOST, share_out

NAMES = [name for name in kernels.names() if kernels.get(name).cpu or not kernels.get(name).gpu]
OURS = [name for name in NAMES if "." not in name]
every_kernel = pytest.mark.parametrize("name", NAMES)
of_any_numbers = pytest.mark.parametrize("name", NAMES)
ADAGRAD_ALIKE = ("sgd", "momentum", "nesterov", "adam", "adamw", "ftrl", "rmsprop", "centered", "signum")
"""Rules that differ from adagrad in their formula alone; each further width compiles loops that are as alike."""


def has_values(kernel: Kernel) -> bool:
    """Whether an operand is an array of values or a number, rather than an array of indices."""
    return any(kind not in "il" for _, kind, _ in kernel.parsed)


def letters_of(name: str) -> list[str]:
    """The lengths in the declaration of a kernel's arrays, as often as they stand in it."""
    return [letter for _, _, axes in kernels.get(name).parsed for letter, _ in axes]


FEWER_WIDTHS = {
    name: replace(case, N=3) if case.N in (2, 4) and not name.startswith("width") else case
    for name, case in CASES.items()
}
"""The cases with widths 2 and 4 only where they are what a case is about: each kernel compiles code for each width."""


def every_case(names: list[str]) -> pytest.MarkDecorator:
    """Each kernel on each case; of rules like adagrad only those of width 1, 3 and 33, and 5 in float64."""
    pairs = [(name, case) for name in names for case in CASES if name.split("_")[0] not in ADAGRAD_ALIKE or _few(case)]
    ids = [f"{name}-{case}" for name, case in pairs]
    return pytest.mark.parametrize(("name", "case"), [(name, FEWER_WIDTHS[case]) for name, case in pairs], ids=ids)


def _few(case: str) -> bool:
    return CASES[case].N == 5 if CASES[case].dtype == np.float64 else CASES[case].N in (1, 3, 33)


@pytest.fixture
def tiny_work_is_parallel(monkeypatch: pytest.MonkeyPatch) -> None:
    share_out(monkeypatch)


@pytest.fixture(autouse=True)
def two_threads(kept_threads):
    threads.set_threads(TWO_AT_MOST)


@pytest.mark.covering(targets=targets_of(FEWER_WIDTHS))
@every_case(NAMES)
def test_twin_computes_what_the_reference_defines(name: str, case: Case) -> None:
    kernel = get(name)
    args = kernel.arguments(case)
    came = run(kernel.cpu, args)
    assert_close(case, came, run(kernel.reference, args))
    assert_inputs_unchanged(kernel, args, came)


@pytest.mark.covering(targets=targets_in_parts(FEWER_WIDTHS))
@every_case(OURS)
@pytest.mark.usefixtures("tiny_work_is_parallel")
def test_same_bits_at_every_thread_count_and_on_every_run(name: str, case: Case) -> None:
    kernel = get(name)
    args = kernel.arguments(case)
    two, again = run(kernel.cpu, args), run(kernel.cpu, args)
    threads.set_threads(1)
    assert same_bits(two, again)
    assert same_bits(two, run(kernel.cpu, args))
    assert_inputs_unchanged(kernel, args, two)


@pytest.mark.covering(targets=lambda case: {case["name"], (loops_of(case["name"]), case["case_name"])})
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


@of_any_numbers
def test_nan_and_inf_go_where_the_reference_puts_them(name: str) -> None:
    kernel, case = get(name), CASES["plain"]
    args = not_finite(kernel, case)
    assert_close(case, run(kernel.cpu, args), run(kernel.reference, args))


def overwritten(kernel: Kernel) -> tuple[str, ...]:
    """Parameters whose old content plays no part, by the header's own word."""
    header = sys.modules[kernel.reference.__module__].__doc__
    return kernel.writes if "overwritten" in re.search(r"^Writes .*", header, re.M).group() else ()


@pytest.mark.parametrize("name", [name for name in NAMES if has_values(kernels.get(name))])
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


@pytest.mark.parametrize("name", [name for name in NAMES if len(set(letters_of(name))) < len(letters_of(name))])
def test_lengths_that_disagree_are_refused(name: str) -> None:
    kernel = get(name)
    args = kernel.arguments(CASES["plain"])
    letters = letters_of(name)
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
    functions |= {id(f): f for f in gather.made}
    return sum(len(f.signatures) for f in functions.values())


@pytest.mark.parametrize("name", OURS)
@pytest.mark.usefixtures("tiny_work_is_parallel")
def test_second_call_compiles_nothing(name: str) -> None:
    kernel = get(name)
    kernel.cpu(*kernel.arguments(random_case(9, 12, 40, 3)))  # that widths share code, `test_lanes.py` shows
    before = compiled_versions()
    kernel.cpu(*kernel.arguments(random_case(13, 17, 70, 3, seed=2)))
    kernel.cpu(*map(strided, kernel.arguments(random_case(9, 12, 40, 3))))
    assert compiled_versions() == before


def test_count_of_versions_sees_a_new_one() -> None:
    get("csr_dense").cpu(*get("csr_dense").arguments(CASES["plain"]))
    before = compiled_versions()
    plan._row_of_entry(np.array([0, 1], np.int16), np.zeros(1, np.int16))
    assert compiled_versions() == before + 1


@pytest.mark.parametrize("name", ["coo_to_csr", "csr_csr", "csr_to_csc", "dense_to_csr", "slice_rows"])
def test_indices_become_int64_where_int32_is_too_narrow(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "INT32_LIMIT", 8)
    kernel, case = get(name), CASES["plain"]
    args = kernel.arguments(case)
    came = run(kernel.cpu, args)
    assert came[0].dtype == came[1].dtype == np.int64
    assert_close(case, came, run(kernel.reference, args))


@pytest.mark.parametrize("share", [0.02, 0.5, 1.0])
def test_whole_blocks_of_a_row_are_compressed_as_the_rest_of_it(share: float) -> None:
    kernel, generator = get("dense_to_csr"), np.random.default_rng(0)
    dense = np.where(generator.random((7, 200)) < share, generator.standard_normal((7, 200)), 0)
    for came, expected in zip(kernel.cpu(dense), kernel.reference(dense), strict=True):
        assert came.tolist() == expected.tolist()


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
            flops *= SIZES.D if name.endswith("dense") else SIZES.U
        if name.endswith("fused"):
            flops += 2 * SIZES.z * SIZES.N
        assert cost.flops == flops
    wider = kernel.cost(Sizes(R=50, z=700, D=90, N=6, U=80, value=8, index=8))
    double = kernel.cost(Sizes(R=100, z=1400, D=180, N=12, U=160))
    assert 0 < cost.bytes_compulsory < wider.bytes_compulsory <= 2 * cost.bytes_compulsory
    assert double.bytes_compulsory > 1.9 * cost.bytes_compulsory
    assert double.flops >= 2 * cost.flops >= 0
