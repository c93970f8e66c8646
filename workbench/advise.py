"""The function `workbench.advise`, under the name of a package that is now `workbench.advising`."""

import sys

import workbench

sys.modules[__name__] = workbench.advise  # type: ignore[assignment]  # a function in the place of a module
