"""Tables of mixed columns beside other imputers, and what pooling gives: docs/tables.md."""
