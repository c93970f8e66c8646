"""The trial of the trials: what the project's own measuring finds where the answer is known.

Trials are measured as a sweep measures them, by its own schedule and supervisor; what differs is that a candidate meets
itself, that loads run next to it, or that a kernel was made slower. Simulations take their noise from recorded trials
of the same machine. `parts.py` lists the parts and how to add one.
"""
