"""What can be computed: one file a family; the format rules of each operator are rows of a table."""
