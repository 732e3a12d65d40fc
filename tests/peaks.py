"""The memory that a call takes at its peak."""

import tracemalloc
from collections.abc import Callable
from typing import Any


def peak(call: Callable[[], Any]) -> int:
    """Return the largest number of bytes that a call holds at a time.

    Call it once before: what is compiled and kept at the first call is not of the call.
    """
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
