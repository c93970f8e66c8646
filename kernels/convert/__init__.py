"""Conversions from one format to another, and row slices for batches."""
