"""What is refused when a kernel is declared, registered or asked for; calls are tested with the kernels."""

import sys

import numpy as np
import pytest

import kernels
from kernels import Case, Cost, Kernel, KernelError
from kernels.contract import HEADINGS

HEADER = "out = x\n\n" + "\n".join(f"{heading:<10} -" for heading in HEADINGS)


def _twin(x, out):
    out[...] = x


def declare(header: str = HEADER, **changes: object) -> Kernel:
    """A kernel whose header is `header`: the checks read the docstring of the module that its cpu twin is from."""
    sys.modules[__name__].__doc__, before = header, sys.modules[__name__].__doc__
    known = {
        "name": "copy",
        "operands": "x:f[R,N] out:f[R,N]",
        "reference": _twin,
        "cpu": _twin,
        "gpu": None,
        "cost": lambda s: Cost(0, 2 * s.R * s.N * s.value),
        "arguments": lambda case: (case.dense(case.R, case.N), case.garbage(case.R, case.N)),
    }
    try:
        return Kernel(**{**known, **changes})
    finally:
        sys.modules[__name__].__doc__ = before


def test_right_declaration_is_accepted_and_works() -> None:
    out = np.zeros((2, 3))
    declare().cpu(np.ones((2, 3)), out)
    assert out.tolist() == [[1, 1, 1], [1, 1, 1]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        *(
            ({"header": HEADER.replace(h, h.lower())}, f"copy: the docstring of .*test_contract lacks {h}")
            for h in HEADINGS
        ),
        *(
            ({twin: lambda out, x: None}, rf"copy.{twin} has the parameters \['out', 'x'\]; its operands say \['x', 'o")
            for twin in ("reference", "cpu", "gpu")
        ),
        ({"writes": ("out", "y")}, r"writes \['y'\], which are no parameters; the parameters are \['x', 'out'\]"),
        *(
            ({"operands": f"{operand} out:f[R]"}, r"is not of the form name:kind\[shape\]")
            for operand in ("x", "x:q[R]", "x:f[R", "x f[R]")
        ),
        ({"operands": "x:f[R,N]<Q out:f[R,N]"}, r"copy: a limit in .* is no axis and no operand"),
    ],
)
def test_wrong_declaration_is_refused(changes: dict, message: str) -> None:
    with pytest.raises(KernelError, match=message):
        declare(**changes)


def test_kernel_without_cpu_twin_says_why() -> None:
    assert declare(cpu=None, unavailable="no compiler").unavailable == "no compiler"


def test_kind_l_is_int64_alone() -> None:
    kernel = declare(operands="x:l[R] out:f[R]")
    with pytest.raises(KernelError, match=r"copy: x is int32; operands of its kind are int64, all the same"):
        kernel.cpu(np.zeros(2, np.int32), np.zeros(2))


def test_operands_of_a_kind_share_a_type() -> None:
    with pytest.raises(KernelError, match=r"copy: out is float64; .*the first is float32.*out.astype"):
        declare().cpu(np.zeros((1, 1), np.float32), np.zeros((1, 1)))


def test_empty_row_starts_are_refused() -> None:
    kernel = declare(operands="x:i[R+1] out:f[R]")
    with pytest.raises(KernelError, match=r"copy: x has shape \[0\]; its axis R\+1 has at least 1"):
        kernel.cpu(np.zeros(0, np.int32), np.zeros(0))


def test_noncontiguous_output_is_written_through() -> None:
    roomy = np.zeros((2, 6))
    declare().cpu(np.ones((2, 3)), roomy[:, ::2])
    assert roomy.tolist() == [[1, 0, 1, 0, 1, 0]] * 2


def test_case_arrays_repeat_for_a_seed_and_differ_between_salts() -> None:
    case = Case(np.array([0, 0]), np.array([], int), np.array([], np.float32), 3, 2, seed=5)
    assert case.dense(4, 4).dtype == np.float32
    assert (case.dense(4, 4) == case.dense(4, 4)).all()
    assert not (case.dense(4, 4) == case.dense(4, 4, salt=1)).any()


def test_unknown_kernel_lists_the_kernels() -> None:
    with pytest.raises(KernelError, match=r"Unknown kernel 'csr_dens'.*Expected one of: .*csr_dense, .*take_rows"):
        kernels.get("csr_dens")


FREE = {"indices of find_rows", "labels of softmax"}
"""Whole numbers that may be any: what is sought and not there is told, and labels are checked in the pass itself."""


def test_every_operand_of_whole_numbers_says_what_it_holds() -> None:
    free = set()
    for name in kernels.names():
        for operand in kernels.get(name).operands.split():
            parameter, _, declared = operand.partition(":")
            is_read = parameter not in kernels.get(name).writes and not kernels.get(name).competitor_of
            if is_read and declared[0] in "il" and declared.endswith("]"):
                free.add(f"{parameter} of {name}")
    assert free == FREE


@pytest.mark.parametrize(
    ("sign", "index", "message"),
    [
        ("<R", [0, 2], r"index\[1\] is 2, out of range. Allowed: 0 to 1"),
        ("<R", [0, -1], r"index\[1\] is -1, out of range. Allowed: 0 to 1. Count from 0"),
        ("<R+1", [3, 2], r"index\[0\] is 3, out of range. Allowed: 0 to 2"),
        ("<limit", [0, 9], r"index\[1\] is 9, out of range. Allowed: 0 to 8"),
        ("<", [0, -1], r"index\[1\] is -1, out of range. Allowed: 0 and more"),
        ("<<R", [1, 0], r"index\[1\] is 0 and index\[0\] is 1. Allowed: indices that rise"),
        ("<!R", [1, 1], r"index has 1 twice. Allowed: each index once"),
        ("^R", [0, 1], r"index goes from 0 to 1. Allowed: 0 to 2"),
        ("^", [1, 1], r"index goes from 1 to 1. Allowed: 0 to 1"),
        ("^", [0, -1], r"index goes from 0 to -1. Allowed: 0 to 0"),
    ],
)
def test_what_operands_hold_is_checked_in_cpu_and_not_in_trusted(sign: str, index: list, message: str) -> None:
    def twin(x, index, limit, out):
        out[...] = x

    twin.__module__ = __name__
    kernel = declare(
        operands=f"x:f[R] index:l[U]{sign} limit:s out:f[R]", reference=twin, cpu=twin, arguments=lambda case: ()
    )
    out = np.zeros(2)
    with pytest.raises(KernelError, match=f"copy: {message}"):
        kernel.cpu(np.ones(2), np.array(index), 9, out)
    assert out.tolist() == [0, 0]
    kernel.trusted(np.ones(2), np.array(index), 9, out)
    assert out.tolist() == [1, 1]


def test_costs_add_up_kind_by_kind():
    one, other = Cost(6, 40, 8, (("entry", 10), ("row", 4))), Cost(2, 20, 0, (("row", 2), ("exp", 6)))
    both = one + other
    assert both == Cost(8, 60, 8, (("entry", 10), ("row", 6), ("exp", 6)))
    assert both.over(2) == Cost(4, 30, 4, (("entry", 5), ("row", 3), ("exp", 3)))
