"""What the fork server loads before the first trial, so that a child starts with it: libraries, and Numba's compiler.

Only serial kernels run here. A process that has started OpenMP's threads must not fork, and the first parallel call, or
a question about the number of threads, would start them.
"""

from workbench.sweep.spec import Cell
from workbench.sweep.trial import run_tiny

run_tiny(Cell())
