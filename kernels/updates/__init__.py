"""Optimizer steps: lazy on the touched rows, and dense on all of them."""
