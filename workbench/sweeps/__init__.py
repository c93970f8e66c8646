"""Sweeps: a spec names axes, the grid their configurations, a child process runs each configuration once a round, one
row a trial."""
