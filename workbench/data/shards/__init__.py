"""Data sets on disk that may be larger than memory: folders of shards, how they are written, shuffled and read.

A folder such as `X.sparse` holds `manifest.json` and a folder for each shard, some of the rows: plain `.npy` files
`indptr` (int64), `indices` (the narrowest type), `data` (none if all values are one), `y`, and `groups` where the
rows have them. The manifest is written last and describes each shard as binsparse does.
"""
