"""The trial of the trials: what the project's own measuring finds where the answer is known.

Trials are measured as a sweep measures them, by its own schedule and supervisor, and recorded (`noise.py`); simulations
take their noise from these records. How to add one: a function that yields outcomes, then an entry of `suite.PARTS`.
"""
