"""The function `workbench.train`, under the name of a package that is now `workbench.training`."""

import sys

import workbench

sys.modules[__name__] = workbench.train  # type: ignore[assignment]  # a function in the place of a module
