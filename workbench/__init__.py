"""Would sparse tensors reduce my training time and memory: in which format, from which density on, and by how much?

Sparse Workbench answers by measuring real training on real kernels. Import the part that is needed: `workbench.formats`
and `workbench.data` hold the matrices, `workbench.sweep` measures, `workbench.analysis` and `workbench.reports` answer.
"""

__version__ = "0.1.0"
