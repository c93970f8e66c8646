"""Costs of a new process before a kernel has computed: `python -m workbench.bench.start NAME` prints three times.

The import of `kernels` with all names looked up; the first call of any compiled function, in which Numba makes itself
ready, once in a process; and the first call of one kernel on a small batch after that. All in seconds.
"""

import json
import sys
from time import perf_counter


def main() -> None:
    """Measure and print, once in a process."""
    begun = perf_counter()
    import numpy as np

    import kernels
    from kernels import partition

    kernels.names()
    imported = perf_counter()
    partition.equal_cost(np.array([0, 1]), 1)
    started = perf_counter()

    from workbench.bench.shapes import Shape, draw

    kernel = kernels.get(sys.argv[1])
    args = kernel.arguments(draw(Shape("small batch", 64, 10_000, 20, slope=1.0), N=16))
    ready = perf_counter()
    kernel.cpu(*args)
    print(json.dumps({"import": imported - begun, "numba": started - imported, "call": perf_counter() - ready}))


if __name__ == "__main__":
    main()
