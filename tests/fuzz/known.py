"""Faults that are found and not yet mended: a part of the kind of failure, and a name for it.

The tests of `make test` leave them out, the table of `make fuzz` marks them.  Whoever mends a fault
removes its lines.
"""

from __future__ import annotations

KNOWN: dict[str, str] = {}
