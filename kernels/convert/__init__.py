"""From one format to another, and row slices for batches."""
