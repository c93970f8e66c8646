"""Files that data sets are read from: opened, recognised by their first bytes, checked, read into arrays.

`opened` gives text as checked bytes, packed or not; `types` tells what a file is. `reading` turns faults into errors
that name the file, and what was read into a data set. Kinds of files that several sources read: `matrix_market`,
`matrices`, `matlab`, `hdf5`, `labels` in a file of their own; `ids` of users, items and nodes into numbers. `optional`
names the packages that some kinds need.
"""
