"""What NumPy does for the types that kernels do not take is what the kernels of those names do."""

import numpy as np
import pytest

import kernels
from tests.support import implementations
from tests.support.cases import CASES, random_case
from workbench import formats
from workbench.formats import numpy_conversions

SOME = (
    "plain",
    "no rows",
    "no columns",
    "nothing",
    "no entries",
    "duplicates",
    "explicit zeros",
    "nan and inf",
    "64 bits",
)
LARGE = {name: CASES[name] for name in SOME} | {"large": random_case(40, 30, 3000, 2, seed=2)}


@pytest.mark.parametrize("case", LARGE)
@pytest.mark.parametrize("name", numpy_conversions.PLAIN)
def test_numpy_does_what_the_kernel_does(name, case):
    kernel = kernels.get(name)
    args = kernel.arguments(LARGE[case])
    for came, wanted in zip(
        implementations.run(numpy_conversions.PLAIN[name], args), implementations.run(kernel.cpu, args), strict=True
    ):
        assert np.shape(came) == np.shape(wanted)
        np.testing.assert_allclose(came, wanted, rtol=1e-5, atol=1e-5)
        if np.asarray(wanted).dtype.kind == "f":
            assert came.dtype == wanted.dtype


@pytest.mark.parametrize("dtype", [*map(str, formats.VALUES)])
def test_kernels_are_taken_where_they_take_the_type(dtype):
    for name in numpy_conversions.PLAIN:
        taken = numpy_conversions.get(name, np.dtype(dtype))
        assert (taken is kernels.get(name).trusted) == (np.dtype(dtype) in formats.FLOATS)
        assert taken in (kernels.get(name).trusted, numpy_conversions.PLAIN[name])
