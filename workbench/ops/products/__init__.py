"""Matrix products: `product.py` has `dot`, `sampled.py` the product at the places of a pattern, `methods.py` the table.

`calls.py` has the ways to compute, `blocks.py` the parts that they are made of.
"""

from workbench.ops.products.calls import make_plan, plan_for, plan_of
from workbench.ops.products.methods import ENGINES, METHODS, Method
from workbench.ops.products.product import NoRuleError, Unsummed, by_format, default_engine, dot, multiply, rule
from workbench.ops.products.sampled import sampled_dot

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
