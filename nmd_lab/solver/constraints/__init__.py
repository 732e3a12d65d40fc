"""Constraints on the factors: what they are, and the factor steps under them."""
