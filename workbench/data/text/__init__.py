"""Text with a row a line, and documents: parsed block by block, or in batches without holding the file.

`svmlight` and `vowpal_wabbit` parse lines of these forms, `separated` those of a few columns; `svmlight_batches` reads
mini-batches from a file, in its order or by `shuffled_lines`. `documents` are found one by one, and `words` makes
columns of them.
"""
