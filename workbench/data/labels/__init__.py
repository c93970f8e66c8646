"""Labels and their meaning: classes, numbers or several classes a row.

`meaning` has the record `Labels` and what a caller may say of them; `reading` makes them of labels as they stand in a
file; `per_class` picks equally many rows of each class.
"""
