"""Benchmarks: suites of cases, all contenders of a case in one process, round by round, one row a contender.

How to add one: a kernel takes part by being registered, a rival by naming the kernel it rivals; a shape is a line of
`shapes.SHAPES`, a suite a function of `suites.SUITES` that yields its cases.
"""
