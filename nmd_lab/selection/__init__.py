"""The choice of rank, ridge, offsets and nonlinearity by the error at held-out entries.

`choose` is the entrance.  It draws held-out entries (`folds`), tries settings on the others
(`trials`), in an order that begins with strong ridges and few components (`search`), and returns
the setting for a fit to all entries, with a table of what was tried (`choice`).
"""
