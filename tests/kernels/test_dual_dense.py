"""Dual ascent on dense rows: what the definition says, and what it comes to on the same rows in CSR form."""

from dataclasses import replace

import numpy as np
import pytest

from kernels import Case, Sizes
from kernels.epochs import dual, dual_dense
from kernels.vector.tiles import full_lanes
from tests.kernels.test_epochs import ADVERSARIAL, adversarial, assert_as_defined
from tests.support.cases import CASES, random_case
from tests.support.implementations import run, same_bits

LANES = full_lanes(32)
FULL = LANES * dual_dense.IN_FLIGHT


@pytest.mark.parametrize("name", [name for name in ADVERSARIAL if name != "nan and inf"])
def test_dense_rows_of_adversarial_shapes_are_what_the_definition_says(name: str) -> None:
    assert_as_defined(dual_dense.get("logistic"), adversarial(name))


@pytest.mark.parametrize(
    ("loss", "name"),
    [
        *(("softmax", "plain"), ("squared", "64 bits, narrow")),
        pytest.param("softmax", "64 bits", marks=pytest.mark.exhaustive),
    ],
)
def test_every_loss_and_type(loss: str, name: str) -> None:
    assert_as_defined(dual_dense.get(loss), CASES[name])


@pytest.mark.parametrize("width", [1, LANES - 1, pytest.param(LANES, marks=pytest.mark.exhaustive), 33])
def test_every_width(width: int) -> None:
    assert_as_defined(dual_dense.get("logistic"), replace(CASES["plain"], N=width))


@pytest.mark.parametrize(
    "columns",
    [
        *(1, FULL, 2 * FULL + LANES, 3 * FULL - 1),
        *(pytest.param(columns, marks=pytest.mark.exhaustive) for columns in (LANES, LANES + 1, FULL + 1)),
    ],
)
def test_every_length_of_a_row(columns: int) -> None:
    """Of one or four vectors, whole and masked, after longer spans and not: as pairs, for each length has its loop."""
    assert_as_defined(dual_dense.get("logistic"), random_case(7, columns, 3 * columns, 3))


@pytest.mark.filterwarnings("ignore:invalid value")
def test_numbers_that_are_not_finite_go_through() -> None:
    assert_as_defined(dual_dense.get("logistic"), adversarial("nan and inf"))


def test_rows_beyond_the_caches_are_asked_for_ahead(monkeypatch) -> None:
    kernel, case = dual_dense.get("logistic"), CASES["plain"]
    near = run(kernel.cpu, kernel.arguments(case))
    monkeypatch.setattr(dual_dense, "cache_bytes", lambda level: 0)
    assert same_bits(near, run(kernel.cpu, kernel.arguments(case)))


@pytest.mark.parametrize(
    ("loss", "dtype", "width", "columns"),
    [
        ("logistic", np.float32, 1, 11),  # loops of other tests, each of which is compared with its definition
        pytest.param("softmax", np.float64, 3, 70, marks=pytest.mark.exhaustive),
        pytest.param("softmax", np.float32, 3, 70, marks=pytest.mark.exhaustive),
        pytest.param("squared", np.float64, 20, 70, marks=pytest.mark.exhaustive),
    ],
)
def test_it_comes_to_what_rows_in_csr_form_come_to(loss: str, dtype: type, width: int, columns: int) -> None:
    x = np.random.default_rng(2).standard_normal((30, columns)).astype(dtype)
    csr = np.arange(31) * columns, np.tile(np.arange(columns), 30), x.reshape(-1)
    case = Case(*csr, columns, width)
    _, _, _, *rest = dual.get(loss).arguments(case)
    rest[2] = np.full(30, -1, dtype)  # squares
    sparse, dense = run(dual.get(loss).cpu, (*csr, *rest)), run(dual_dense.get(loss).cpu, (x, *rest))
    rounding = {"rtol": 1e-3, "atol": 1e-4} if dtype == np.float32 else {"rtol": 1e-9, "atol": 1e-11}
    for one, other in zip([sparse[0], *sparse[4:]], [dense[0], *dense[2:]], strict=True):
        np.testing.assert_allclose(one, other, **rounding)
    names = [name for name, _, _ in dual_dense.get(loss).parsed]
    place = 1 + names.index("squares")
    np.testing.assert_array_equal(dense[place], sparse[place + 2])


def test_the_cost_is_that_of_all_elements() -> None:
    cost = dual_dense.get("squared").cost(Sizes(R=50, z=700, D=90, N=6, U=80))
    assert cost.flops == 4 * 50 * 90 * 6 + dual.TURNS * (4 * 50 * 6 + 6 * 50 * 6)
    assert cost.bytes_compulsory == 50 * 90 * 4 + 3 * 50 * 6 * 4 + 2 * 90 * 6 * 4
