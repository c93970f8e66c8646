"""What a new process pays before a kernel has computed: `python -m workbench.bench.start NAME` prints two times.

The import of `kernels` with all names looked up, and the first call of one kernel on a small batch; both in seconds.
"""

import json
import sys
from time import perf_counter


def main() -> None:
    """Measure and print, once in a process."""
    begun = perf_counter()
    import kernels

    kernels.names()
    imported = perf_counter()

    from workbench.bench.shapes import Shape, draw

    kernel = kernels.get(sys.argv[1])
    args = kernel.arguments(draw(Shape("small batch", 64, 10_000, 20, slope=1.0), N=16))
    ready = perf_counter()
    kernel.cpu(*args)
    print(json.dumps({"import": imported - begun, "call": perf_counter() - ready}))


if __name__ == "__main__":
    main()
