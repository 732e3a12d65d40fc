"""One sentence for a file that cannot be read."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def errors_of(path: object) -> Iterator[None]:
    """Turn any error of a reader into a ValueError of one sentence that names the file.

    The libraries that read files raise almost any error for a damaged one, zlib.error and KeyError
    among them.  What they warn of is ignored.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except ImportError:
        raise
    except Exception as error:
        text = str(error) if type(error) is not KeyError else f"no {error}"
        text = " ".join(text.split()).removeprefix("Error tokenizing data. C error: ")
        sentence = text.partition(". ")[0].partition(": build it")[0]
        reason = sentence.rstrip(".:") or type(error).__name__
        raise ValueError(
            f"file={str(path)!r} cannot be read: {reason}; check it, or get it again."
        ) from error
