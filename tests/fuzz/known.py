"""Faults that are found and not yet mended: a part of the kind of failure, and a name for it.

The tests of `make test` leave them out, the table of `make fuzz` marks them.  Whoever mends a fault
removes its lines.
"""

from __future__ import annotations

ONE_LINE = "one row or column, or a zero residual, under the start by Lanczos"
VALIDATION = "nothing can be held out"
SCALE = "tiny and huge scales, and data that are all zero"
BROADCAST = "Numba's warning about 1 x 1 data"
LANCZOS = "Lanczos draws by itself"
READERS = "damaged files give raw errors"
SAVED = "damaged files of results give raw errors"
SIGNALS = "signals at any moment of a fit"

KNOWN: dict[str, str] = {
    "_svd_by_lanczos > _svds:_iv": ONE_LINE,
    "_svd_by_lanczos > arpack:iterate": ONE_LINE,
    "fails with ArpackError": ONE_LINE,
    "foreign RuntimeWarning in lib/_function_base_impl.py": VALIDATION,
    "foreign RuntimeWarning in linalg/_linalg.py": SCALE,
    "foreign RuntimeWarning in refinement/lagrangian.py": SCALE,
    "ZeroDivisionError in solver/held_out.py": VALIDATION,
    "foreign RuntimeWarning in data/sparse.py": SCALE,
    "the same seed gives": LANCZOS,
    "equal containers give other bits": LANCZOS,
    "foreign RuntimeWarning in datasets/pictures.py": READERS,
    "takes more than 10 s": READERS,
    "foreign FutureWarning in typing/typeof.py": BROADCAST,
    "data/readers.py": READERS,
    "foreign ResourceWarning in fuzz/readers.py": READERS,
    "the process ends with SIGSEGV": READERS,
    "data/long_table.py": READERS,
    "something is printed": SAVED,
    "KeyError in studies/": SAVED,
    "SIGINT": SIGNALS,
    "SIGTERM": SIGNALS,
    "a file that the next save does not remove": "files that a killed save leaves",
    "a killed study leaves a process": "workers that outlive their study",
}
