"""Files that data sets are read from: opened, recognised by their first bytes, checked, read into arrays.

`opened` gives text as checked bytes, packed or not; `types` tells what a file is. `reading` turns errors of libraries
into errors that name the file, and what was read into a data set. Kinds of files that several sources read:
`matrix_market`, `matlab`, `labels` in a separate file.
"""
