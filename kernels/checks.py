"""The check of a kernel's operands that every call pays for: a second's millionth, so that small batches stay cheap.

What is wrong, and how to say so, is left to `contract.check_operands`, three times as slow.
"""

from collections.abc import Callable

import numpy as np


def quick_check(parsed: tuple, kinds: dict[str, tuple[np.dtype, ...]]) -> Callable[[tuple], bool]:
    """A function that tells whether arguments are all right and plain: C-contiguous, aligned and writable.

    `parsed` and `kinds` are as in `contract`.
    """
    places = [place for place, (_, kind, _) in enumerate(parsed) if kind != "s"]
    arrays = [parsed[place] for place in places]
    axes_of = tuple(len(axes) for _, _, axes in arrays)
    first = {kind: number for number, (_, kind, _) in reversed([*enumerate(arrays)])}
    allowed = [(number, kinds[kind]) for kind, number in first.items()]
    alike = [(number, first[kind]) for number, (_, kind, _) in enumerate(arrays) if number != first[kind]]
    lengths, least = _lengths([axes for _, _, axes in arrays])
    every = len(places) == len(parsed)
    ndarray = np.ndarray

    def is_right(args: tuple) -> bool:
        shapes, types = [], []
        for array in args if every else [args[place] for place in places]:
            if type(array) is not ndarray or not array.flags.carray:
                return False
            shapes.append(array.shape)
            types.append(array.dtype)
        if tuple(map(len, shapes)) != axes_of:
            return False
        return (
            all([types[one] is types[other] for one, other in alike])  # noqa: C419 - a list is quicker
            and all([types[number] in known for number, known in allowed])  # noqa: C419
            and all([shapes[a][i] == shapes[b][j] + more for a, i, b, j, more in lengths])  # noqa: C419
            and all([shapes[a][i] >= more for a, i, more in least])  # noqa: C419
        )

    return is_right


def _lengths(shapes: list[tuple]) -> tuple[list, list]:
    """Axes that must agree, as (array, axis, other array, other axis, difference), and least lengths of others."""
    seen: dict[str, tuple[int, int, int]] = {}
    equal, least = [], []
    for array, axes in enumerate(shapes):
        for axis, (letter, more) in enumerate(axes):
            if letter in seen:
                other, other_axis, other_more = seen[letter]
                equal.append((array, axis, other, other_axis, more - other_more))
                continue
            seen[letter] = array, axis, more
            if more:
                least.append((array, axis, more))
    return equal, least
