"""Refinements: quasi-Newton steps on the augmented Lagrangian, between iterations of ADMM."""
