"""Optimizer steps: lazy on the active rows, and dense on all of them."""
