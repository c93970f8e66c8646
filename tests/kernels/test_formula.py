"""Formulas: the same Python function computes, and is written down by each backend in full."""

import inspect
import re

import numpy as np
import pytest

from kernels import formula
from kernels.formula import Backend, choose, clipped, magnitude, sign, sqrt, with_sign
from kernels.gpu.updates import Lines, word
from kernels.vector.operands import Vectors


def every_operation(x, y):
    """Each operator and function, with plain numbers on either side."""
    z = 1.0 - x + y * 2.0 - 3.0 / y + x / y
    z = choose(x <= y, z, 0.5) + choose(y > 0.25, 1.5, z)
    return clipped(z, 2.0) + sign(x) * sqrt(magnitude(y)) + with_sign(y, x)


@pytest.mark.parametrize(("x", "y"), [(0.5, -2.0), (-3.0, 0.3), (4.0, 4.0)])
def test_lines_of_cuda_say_what_the_formula_computes(x: float, y: float) -> None:
    """They are as good as Python, but for the conditional operator."""
    lines = Lines()
    result = word(every_operation(lines.named("x"), lines.named("y")))
    names = {"x": x, "y": y, "T": float, "sqrt": np.sqrt, "fabs": abs, "copysign": np.copysign}
    for line in lines.lines:
        name, text = re.fullmatch(r"const (?:T|bool) (\w+) = (.*);", line).groups()
        text = text.replace("(T)", "")
        if " ? " in text:
            condition, one, other = re.fullmatch(r"(.*) \? (.*) : (.*)", text).groups()
            text = f"{one} if {condition} else {other}"
        names[name] = eval(text, {}, names)
    assert names[result] == every_operation(x, y)


def test_a_backend_lacks_nothing_that_formulas_are_written_with() -> None:
    for backend in (Vectors, Lines):
        assert issubclass(backend, Backend)
        assert not inspect.isabstract(backend)
    with pytest.raises(TypeError, match="abstract"):
        Backend()


def test_what_a_formula_cannot_do_is_an_error_at_once() -> None:
    number = Lines().named("x")
    with pytest.raises(TypeError):
        number**2
    with pytest.raises(TypeError):
        formula.sqrt(number) % 2
