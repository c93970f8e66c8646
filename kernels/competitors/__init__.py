"""Competitors: implementations of other libraries under the contract of the kernels that they are compared with."""
