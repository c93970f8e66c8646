"""Explanations why kernels stay below the bound of their cost, for the results page."""

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

BY_KERNEL = {
    **dict.fromkeys(["closed_form", "closed_form_pair", "retain_rows", "scatter_rows", "take_rows"], FOUND_ROWS),
    **dict.fromkeys(["add_rows", "merge_rows"], SORTED_FIRST),
    **dict.fromkeys(["coo_to_csr", "csr_to_coo_rows", "csr_to_csc", "slice_rows"], NEW_MEMORY),
    **dict.fromkeys(["csr_csr", "sampled_csr"], LOOKED_UP),
    **dict.fromkeys(["csr_dense", "csr_dense_ones"], GATHERED_ROWS),
    **dict.fromkeys(["csr_t_dense", "csr_t_dense_ones"], SHORT_COLUMNS),
    **dict.fromkeys(["dense_csr", "dense_csr_t"], ZEROS),
    **dict.fromkeys(["square_norm"], FEW_NUMBERS),
    "csr_csr_dense": "rows have few terms and lengths that no processor guesses",
    "logistic": f"{FEW_NUMBERS}; with more, sixteen numbers take 44 vector instructions, two of "
    "them divisions; exp and log as the bound has them are half of these",
    "softmax": "rows are short: their largest, their sum, its division and its logarithm are single numbers, and "
    "each waits for the one before",
    "squared": f"{FEW_NUMBERS}; with more, the sum is of float64",
}


def why_below(kernel: str) -> str:
    """Return why a kernel, or one that it competes with, stays below its bound; "" if nothing is known."""
    name = kernel.rpartition(".")[2]
    is_update = name.endswith(("_lazy", "_fused", "_step_by_step"))
    return BY_KERNEL.get(name, FOUND_ROWS if is_update else "")
