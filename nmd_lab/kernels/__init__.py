"""The compiled loops over entries and rows, and the sweep that calls them."""
