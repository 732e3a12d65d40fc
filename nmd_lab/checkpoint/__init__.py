"""Checkpoints: where a computation stands, in a file from which a later process resumes."""
