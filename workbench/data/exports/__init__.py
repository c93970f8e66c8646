"""Files that other programs read, one kind a file: `data.export(dataset, path, to="parquet")` and others.

How to add a kind: write one file in this folder that ends in `register(Export(...))`; `svmlight.py` is the one to copy.
"""
