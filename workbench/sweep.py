"""The function `workbench.sweep`, under the name of a package that is now `workbench.sweeps`."""

import runpy
import sys

import workbench

if __name__ == "__main__":
    print("python -m workbench.sweep is now python -m workbench.sweeps; the old name works for one release.")
    runpy.run_module("workbench.sweeps", run_name="__main__", alter_sys=True)
else:
    sys.modules[__name__] = workbench.sweep  # type: ignore[assignment]  # a function in the place of a module
