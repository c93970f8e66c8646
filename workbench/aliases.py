"""Names that earlier versions used, and the names that replaced them: the one table that inputs look them up in.

Specs that users typed or runs stored may have old keys, and scripts may import old names of public packages. Both are
read here, with a FutureWarning that states the new name. Everything that is written has new names.

How to add one: an entry in one of the tables below. Nothing of the project is imported here, so that everything may
import it.
"""

import importlib
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

END = "2.0"
"""Version that former names no longer work in."""

SPEC_KEYS = {"contenders": "candidates"}
"""Keys of a sweep's spec, in TOML and in the `spec.json` of a run."""
LIMIT_KEYS = {"seconds_sweep": "budget"}
"""Keys of the table `limits` of a spec in TOML."""
RECORD_COLUMNS = {"contender": "candidate", "rivals": "candidates"}
"""Columns of stored records, and fields of the progress of a run."""
SIDES = {"rival": "competitor"}
"""Values of the column `side` of stored records."""
CHARTS = {"rival_ratio": "competitor_ratio"}
"""Names of charts."""
CHART_CONTROLS = {"rival": "competitor"}
"""Controls of charts."""

NAMES = {
    "workbench.advising": {"suggested_model": "suggest_model"},
    "workbench.command": {"exits": "exit_codes"},
    "workbench.analysis": {"latest": "pool_rounds", "verdict": "contest_verdict"},
    "workbench.bridges": {"Breach": "Violation", "made_dense": "densify_with_warning"},
    "workbench.data": {"between": "rows_between", "merged": "merge_rare_classes", "shuffled": "shuffle_rows"},
    "workbench.formats": {"admit": "coerce", "enter": "validate"},
    "workbench.kvstore": {"Drawn": "LazyRandomRows"},
    "workbench.store": {"others": "external"},
    "workbench.sweeps.run_folder": {
        "dump": "workbench.sweeps.spec.dump_spec",
        "read": "read_progress",
        "start": "start_run",
        "stop": "stop_run",
    },
    "workbench.sweeps.spec": {
        "Cell": "Configuration",
        "dump": "dump_spec",
        "load": "load_spec",
        "parse": "parse_spec",
        "validate": "validate_spec",
    },
    "workbench.training": {"Laps": "PhaseTimer", "why_impossible": "impossible_reason"},
}
"""Public names by module, each with the name that replaced it: in that module, or with its module if it has moved."""


def with_new_keys(given: Mapping[str, Any], names: Mapping[str, str], warn: bool = True) -> dict[str, Any]:
    """Return a mapping with its old keys replaced by new ones.

    Parameters
    ----------
    given : mapping
        Keys and values as they were typed or stored. A mapping that has both the old and the new key stays as it is.
    names : mapping
        The new key of each old one, such as `SPEC_KEYS`.
    warn : bool, default True
        Whether an old key gives a FutureWarning. Files that the project wrote itself are read without one.

    Returns
    -------
    dict
        A copy, in the order of `given`.

    Examples
    --------
    >>> with_new_keys({"name": "x", "contenders": []}, SPEC_KEYS, warn=False)
    {'name': 'x', 'candidates': []}
    """
    read = {}
    for key, value in given.items():
        new = names.get(key, key)
        if new != key and new not in given:
            if warn:
                text = f"The key {key!r} is called {new!r} now; the old one is read until version {END}."
                warnings.warn(text, FutureWarning, stacklevel=4)
            key = new
        read[key] = value
    return read


BUDGET = ("seconds", "seconds_sweep", "seconds_budget")
"""Former names of `budget`, the seconds that all of a command or call may take."""


def take_budget(budget: Any, given: dict[str, Any], names: Sequence[str] = BUDGET) -> Any:
    """Return the budget of a call, whose further arguments may have it under a former name, with a FutureWarning.

    Parameters
    ----------
    budget : float or None
        The argument `budget`.
    given : dict
        Further keyword arguments; a former name is removed.
    names : sequence of str
        Former names that mean the budget in this call.

    Returns
    -------
    float or None
        The value of the former name, or `budget` if there is none.

    Raises
    ------
    ValueError
        If the budget is given twice.

    Examples
    --------
    >>> take_budget(None, {"rounds": 4}) is None
    True
    """
    found = [name for name in names if given.get(name) is not None]
    if not found:
        return budget
    if budget is not None or len(found) > 1:
        raise ValueError(f"{found[0]} is a former name of budget; expected one of the two.\nType budget=60.")
    value = given.pop(found[0])
    text = f"{found[0]} is called budget now; the old name is read until version {END}. Type budget={value!r}."
    warnings.warn(text, FutureWarning, stacklevel=3)
    return value


def find(module: str, name: str) -> Any:
    """Return what an old name of a module stands for, with a FutureWarning; the `__getattr__` of such modules.

    Parameters
    ----------
    module : str
        Full name of the module, a key of `NAMES`.
    name : str
        The name that the module lacks.

    Returns
    -------
    object
        The attribute that has replaced it.

    Raises
    ------
    AttributeError
        If `name` is no old name of the module.

    Examples
    --------
    >>> find("workbench.formats", "no_such_name")
    Traceback (most recent call last):
    AttributeError: module 'workbench.formats' has no attribute 'no_such_name'
    """
    new = NAMES[module].get(name)
    if new is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    place, _, new = (new if "." in new else f"{module}.{new}").rpartition(".")
    text = f"{module}.{name} is called {place}.{new} now; the old name ends with version {END}."
    warnings.warn(text, FutureWarning, stacklevel=3)
    found = getattr(sys.modules.get(place) or importlib.import_module(place), new, None)
    return importlib.import_module(f"{place}.{new}") if found is None else found
