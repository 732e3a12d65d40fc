"""The problem of a fit: X in its unit, the model of its columns, starting factors, states."""
