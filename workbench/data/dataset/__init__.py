"""A data set: its record, parts of it, and what is made of it.

`record` is the `Dataset` with fewer rows, fewer features, another order, a held-out part. Its matrix may be `stored` on
disk, or come in `row_blocks`; `edges` are those of a graph among its rows. `density` drops or joins entries, `merging`
joins classes; `targets` are what a model is trained towards, and `summary` is the line that tells of them.
"""
