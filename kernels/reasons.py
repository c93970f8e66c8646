"""Explanations why kernels stay below the bound of their cost, shared by kernels, for the results page."""

NEW_MEMORY = (
    "the result is new memory, whose pages the system clears first; what places entries runs on one thread where there "
    "are many rows or columns to count"
)
SORTED_FIRST = "indices are sorted first, which the bound does not count"
FOUND_ROWS = (
    "rows of weights and states are found one by one, each on a page of its own: what is waited for is latency, of "
    "caches, memory and page tables, while the bound counts bytes"
)
GATHERED_ROWS = (
    "rows that are gathered stand on a page each: beyond what the caches of page tables hold an entry waits for its "
    "page, as the bound, of tables that are read again and again, does in part"
)
SHORT_COLUMNS = (
    "columns have few entries and lengths that no processor guesses: with N = 1 to find where each ends takes longer "
    "than its sum"
)
LOOKED_UP = "each term is looked up by its column, which the bound does not count"
ZEROS = "zeros of the dense operand are looked for, and rows of the result added to where they stand"
FEW_NUMBERS = "with N = 1 a call has 4,096 numbers, and entering it takes as long"
