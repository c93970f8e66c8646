"""Products by other libraries, for the engines `vendor` (SciPy, cuSPARSE) and `dense` (BLAS, cuBLAS)."""
