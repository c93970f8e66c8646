"""Names of optimizer classes that bridges make, one for each optimizer that is registered: `LazyAdam` and its like."""

from kernels.registry import unknown_name
from workbench import optimizers

SPELLED = {"sgd": "SGD", "adamw": "AdamW", "rmsprop": "RMSprop", "centered_rmsprop": "CenteredRMSprop"}
"""Names of rules that frameworks spell in a way of their own."""


def class_name(rule: str) -> str:
    """Return the class of a rule.

    >>> class_name("centered_rmsprop")
    'LazyCenteredRMSprop'
    """
    return "Lazy" + SPELLED.get(rule, "".join(word.capitalize() for word in rule.split("_")))


def class_names() -> list[str]:
    """Return the names of all classes."""
    return [class_name(rule) for rule in optimizers.names()]


def rule_of(name: str) -> str:
    """Return the rule of a class; `AttributeError` lists the classes that there are."""
    rules = {class_name(rule): rule for rule in optimizers.names()}
    if name not in rules:
        raise AttributeError(unknown_name("name", name, rules))
    return rules[name]


def described(rule: str) -> str:
    """Return the docstring of a class: the rule's formulas, dense and lazy."""
    return f"{rule}, lazily.\n\n{optimizers.get(rule).formulas}"
