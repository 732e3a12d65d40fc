"""Where the arrays of a fit lie, and the operations on all their entries."""
