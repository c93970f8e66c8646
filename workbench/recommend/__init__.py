"""Recommenders of items from what users took: factors by alternating least squares, and EASE, a dense linear model."""
