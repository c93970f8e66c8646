"""What the cases of kernels must show together, for tests marked `covering` of a kernel `name` and a `case`.

Kernels of one family have the same loops, as updates have that differ in their formula: an adversarial input is given
to one of them. Each kernel computes the core cases, every class of widths and every combination of types, which compile
code for each; of updates one of a family does. A width is computed by one kernel of each folder; so are all types of
each class of widths, on CUDA by each family.
"""

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import kernels
from kernels import Case

WIDTHS = (1, 4, 16, 64)
"""Upper bounds of the classes of widths, which are compiled differently; one more class is above."""
WIDTHS_CUDA = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""The same for CUDA, whose sums have a variant for each class of widths and type."""
CORE = ("plain", "duplicates", "width 33", "64 bits")
CORE_CUDA = ("plain", "width 64", "64 bits", "hot columns", "long rows, vectors")


def family_of(name: str) -> str:
    """Kernels with the same loops: updates by what they update, competitors by library; any other has its own."""
    if "." in name:
        return name.partition(".")[0]
    return f"updates {name.rpartition('_')[2]}" if folder_of(name) == "updates" else name


def loops_of(name: str) -> str:
    """Updates by what they update, whose loops are compiled alike; any other kernel has its own."""
    return family_of(name) if folder_of(name) == "updates" else name


def folder_of(name: str) -> str:
    """The folder of a kernel in `kernels`."""
    return kernels.get(name).reference.__module__.split(".")[1]


def targets_of(
    cases: Mapping[str, Case],
    core: tuple[str, ...] = CORE,
    widths: tuple[int, ...] = WIDTHS,
    typed: Callable[[str], str] = folder_of,
) -> Callable[[Mapping[str, Any]], set[Hashable]]:
    """Make the targets for a test that is given cases of this table; `typed` is what has all types of each width."""
    names = {id(case): title for title, case in cases.items()}

    def targets(params: Mapping[str, Any]) -> set[Hashable]:
        name, case = params["name"], params["case"]
        title, types = names[id(case)], f"{case.dtype} {case.indices.dtype}"
        width = sum(bound < case.N for bound in widths)
        of_types = typed(name) if "64 bits" in title else family_of(name)
        like = folder_of(name) if "width" in title else of_types
        compiled = loops_of(name)
        found: set[Hashable] = {(like, title), (compiled, "width", width), (compiled, types)}
        found.add((typed(name), "width", width, case.dtype))
        is_core = title in core and (compiled == name or "64 bits" not in title)
        return found | {(name, title)} if is_core else found

    return targets


def targets_in_parts(cases: Mapping[str, Case]) -> Callable[[Mapping[str, Any]], set[Hashable]]:
    """Make the targets for a test of work that is shared out: cases of which there is only one part show nothing.

    Code for threads takes longest to compile: of each folder one kernel has the cases of 64 bits, which every kernel
    computes on one thread.
    """
    names = {id(case): title for title, case in cases.items()}
    whole = targets_of(cases, ("many rows",))

    def targets(params: Mapping[str, Any]) -> set[Hashable]:
        case = params["case"]
        if case.R < 2 or case.D < 2 or case.indices.size < 2:
            return set()
        return whole(params) if case.indices.itemsize == 4 else {(folder_of(params["name"]), names[id(case)])}

    return targets
