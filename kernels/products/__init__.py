"""Sparse times dense: one file an operation."""
