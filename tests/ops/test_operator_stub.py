"""The stub of `workbench.ops` lists every operator, so that checkers and editors know `ops.dot`."""

from tests.support import operator_stub
from workbench import ops


def test_the_stub_is_that_of_the_registered_operators():
    written = operator_stub.STUB.read_text(encoding="utf-8")
    assert written == operator_stub.text(), "write it: python -m tests.support.operator_stub"
    assert all(f"\n{name}: Op\n" in written for name in ops.names())
