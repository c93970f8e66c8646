"""Matrix products: `dot`, and `sampled_dot` at the positions of a pattern, with their table in `methods.py`.

`methods.py` has the implementations, `blocks.py` their parts.
"""

from workbench.ops.products.methods import ENGINES, METHODS, Method, make_plan, plan_for, plan_of
from workbench.ops.products.product import (
    NoRuleError,
    Unsummed,
    by_format,
    default_engine,
    dot,
    multiply,
    rule,
    sampled_dot,
)

__all__ = [
    "ENGINES",
    "METHODS",
    "Method",
    "NoRuleError",
    "Unsummed",
    "by_format",
    "default_engine",
    "dot",
    "make_plan",
    "multiply",
    "plan_for",
    "plan_of",
    "rule",
    "sampled_dot",
]
