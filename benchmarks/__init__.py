"""Benchmarks: suites of cases, all candidates of a case in one process, round by round, one row a candidate.

How to add one: a kernel takes part by being registered, a competitor by naming the kernel it competes with; a shape is
a line of `shapes.SHAPES`, a suite a function of `suites.SUITES` that yields its cases.
"""
