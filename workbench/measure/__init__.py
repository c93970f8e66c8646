"""Measuring: the clock, memory, the machine, statistics."""
