"""Sparse data whose absent entries are zeros, without arrays of the size of the matrix."""
