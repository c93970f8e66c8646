"""Every file of operators may be the first that is imported: all operators are there then, whichever it was."""

import pkgutil
import subprocess
import sys

import pytest

from workbench import ops

MODULES = sorted(module.name for module in pkgutil.iter_modules(ops.__path__))
ONE = "import importlib, sys; importlib.import_module(sys.argv[1]); from workbench import ops; print(len(ops.names()))"


@pytest.mark.parametrize("module", ["losses", "spreading", "reductions", "binary", "unary", "loss_slopes"])
def test_a_file_of_operators_that_is_imported_first_finds_all_operators(module):
    assert module in MODULES
    made = subprocess.run([sys.executable, "-c", ONE, f"workbench.ops.{module}"], capture_output=True, text=True)
    assert made.stdout == f"{len(ops.names())}\n", made.stderr


def test_no_operator_has_the_name_of_a_file():
    """The attribute of the package would be the file once that is imported."""
    assert not set(MODULES) & set(ops.names())
