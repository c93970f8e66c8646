"""Vector code for Numba: row loops whose sums stay in registers, and the elementary functions that they use."""
