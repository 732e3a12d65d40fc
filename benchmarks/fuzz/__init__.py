"""A search for faults that no test was written for: see `__main__`."""
