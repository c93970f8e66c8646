"""Every file of operators may be the first that is imported: all are there then; and the stub lists them."""

import pkgutil
import subprocess
import sys

from tests.support import operator_stub
from workbench import ops

MODULES = sorted(module.name for module in pkgutil.iter_modules(ops.__path__))
FIRST = ["losses", "spreading", "reductions", "binary", "unary", "indexing"]
EACH = """
import importlib, os, sys
import workbench.formats  # what all of them import first, once

assert "workbench.ops" not in sys.modules
for module in sys.argv[1:]:
    child = os.fork()
    if not child:
        importlib.import_module(f"workbench.ops.{module}")
        from workbench import ops
        print(module, len(ops.names()), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


def test_a_file_of_operators_that_is_imported_first_finds_all_operators():
    assert set(FIRST) <= set(MODULES)
    made = subprocess.run([sys.executable, "-c", EACH, *FIRST], capture_output=True, check=False, text=True)
    assert made.stdout.splitlines() == [f"{module} {len(ops.names())}" for module in FIRST], made.stderr


def test_no_operator_has_the_name_of_a_file():
    """The attribute of the package would be the file once that is imported."""
    assert not set(MODULES) & set(ops.names())


def test_the_stub_is_that_of_the_registered_operators():
    written = operator_stub.STUB.read_text(encoding="utf-8")
    assert written == operator_stub.text(), "write it: python -m tests.support.operator_stub"
    assert all(f"\n{name}: Op\n" in written for name in ops.names())
