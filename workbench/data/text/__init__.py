"""Text with a row a line, and documents, parsed block by block.

`svmlight` and `vowpal_wabbit` parse lines of these forms, `separated` those of a few columns. `documents` are found one
by one, and `words` makes columns of them.
"""
