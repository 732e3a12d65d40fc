"""A fit: what the data say, the loop over iterations, its starts, and new rows."""
