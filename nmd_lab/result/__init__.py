"""What comes out of a fit: labelled factors, predictions, files.

Loading this package loads nothing of the solver.
"""
