"""Engines: algorithms as a start, a step and an iterate, which the one loop runs."""
