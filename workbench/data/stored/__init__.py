"""Data sets on disk that may be larger than memory: a folder of plain arrays, how it is written, shuffled and read.

A folder such as `X.sparse` holds the CSR arrays `indptr.npy` (int64), `indices.npy`, `data.npy` (none if all values are
1), the targets `y.npy`, `groups.npy` if rows have groups, and `meta.json`, which is written last.
"""
