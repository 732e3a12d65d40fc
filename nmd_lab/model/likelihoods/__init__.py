"""Losses beyond the paper, one family a file: each is the likelihood of a kind of data."""
