"""Rivals that the kernels are compared with, under the same contract."""
