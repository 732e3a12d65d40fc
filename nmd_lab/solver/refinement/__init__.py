"""Quasi-Newton steps on the augmented Lagrangian, which go on beside Algorithm 1."""
