"""Background work of the explorers: fits, draws and snapshots in threads."""
