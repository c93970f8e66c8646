"""Transposed products: the gradient of a weight, on the touched rows or in full."""
