"""The model: nonlinearities, losses, and the scalar map that joins one of each.

The modules of this package know neither data nor solver.
"""
