"""Types of `workbench.ops` for checkers and editors: operators are registered at run time, so a stub lists them.

Run `python -m tests.support.operator_stub` after an operator is added, renamed or described anew.
"""

from pathlib import Path

from workbench import ops

STUB = Path(ops.__file__).with_suffix(".pyi")


def text() -> str:
    """Content of the stub: the names of the package with their modules, then an attribute for each operator."""
    homes: dict[str, list[str]] = {}
    for name in ops.__all__:
        homes.setdefault(home_of(name), []).append(name)
    lines = ['"""Operators on arrays and symbols. Written by `python -m tests.support.operator_stub`."""', ""]
    for home, names in sorted(homes.items()):
        lines += [f"from {home} import {name} as {name}" for name in sorted(names, key=place_of)]
    lines.append("")
    for name in ops.names():
        lines += [f"{name}: Op", f'"""{meaning_of(name)}"""']
    return "\n".join(lines) + "\n"


def place_of(name: str) -> tuple[int, str]:
    """Order of imported names: constants, classes, functions."""
    return 0 if name.isupper() else 1 if name[0].isupper() else 2, name


def home_of(name: str) -> str:
    """Module that a name of the package is imported from."""
    modules = ("contract", "fallback")
    for module in modules:
        if hasattr(__import__(f"workbench.ops.{module}", fromlist=[module]), name):
            return f"workbench.ops.{module}"
    raise ValueError(f"{name} of workbench.ops is in none of the modules {', '.join(modules)}.")


def meaning_of(name: str) -> str:
    """First line of the description of an operator, cut to a line of the project."""
    line = " ".join((ops.get(name).__doc__ or name).split("\n\n")[0].split())
    return line if len(line) <= 100 else line[:97] + "..."


if __name__ == "__main__":
    STUB.write_text(text(), encoding="utf-8")
