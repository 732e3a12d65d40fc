"""What is observed: from any input to plain matrices, and the labels back.

Nothing here knows a model or a solver.
"""
