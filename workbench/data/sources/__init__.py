"""Data sets by name, one file each: what is drawn, and a reader for each kind of file."""
