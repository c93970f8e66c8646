"""Sweeps: a spec names axes, the grid their cells, a child process runs each cell once a round, one row a trial."""
