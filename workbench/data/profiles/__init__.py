"""The profile of a data set: the numbers that decide what sparse formats can save.

`profile` counts them, `column_counts` how popular columns are, `row_hashes` find equal rows; `worker` counts in a
process of its own.
"""
