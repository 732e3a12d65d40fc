"""What `nmd.complete(X)` chooses, beside the best in hindsight: the tables of docs/selection.md."""
