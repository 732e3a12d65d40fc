"""The model: nonlinearities, losses, the kinds that join one of each, and the scalar map of a kind.

The modules of this package import neither data nor solver.
"""
