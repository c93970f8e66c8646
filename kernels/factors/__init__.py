"""Factors of rows by alternating least squares: with the other side fixed, every row is a least-squares problem."""
