"""Benchmarks: suites on one harness, all candidates of a case round by round, one record a candidate.

How to add one: a kernel takes part by being registered, a competitor by naming the kernel it competes with; a shape is
a line of `shapes.SHAPES`, a suite a module as `harness` describes it, with an entry of `suites.SUITES`.
"""
