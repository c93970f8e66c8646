"""Transposed products: the gradient of a weight, on the active rows or in full."""
