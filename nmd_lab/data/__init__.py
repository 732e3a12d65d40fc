"""Data: from any accepted input to observations of a matrix, and the labels back onto results.

The modules of this package import neither model nor solver.
"""
