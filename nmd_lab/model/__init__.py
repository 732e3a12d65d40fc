"""What is fitted: nonlinearities, losses and the scalar map in which a pair of them meets.

Nothing here knows data or a solver.
"""
