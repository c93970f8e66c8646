"""The guard of fair comparisons: the project's best dense and sparse training compared with the best independent ones.

A configuration (`configurations.py`) is logistic or softmax regression on drawn rows: SGD, float32, rows shuffled, with
an intercept, the loss of every batch computed. Every candidate trains it in one process, in turned rounds, after its
weights and losses were compared with plain loops in float64 over the same batches. How to add a competitor: a file of
`competitors`, for which `numpy_blas.py` is the one to copy.
"""
