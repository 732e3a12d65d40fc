"""An exception as one line for the user."""

from __future__ import annotations


def sentence(error: BaseException) -> str:
    """Return the message of an exception as one line.

    The class is named before it, unless it is a `ValueError` or `TypeError` whose message is a
    sentence with a full stop, as those of this package are.

    >>> sentence(ValueError("rank=0 is too small.")), sentence(MemoryError("no room"))
    ('rank=0 is too small.', 'MemoryError: no room')
    """
    message = " ".join(str(error.args[0] if error.args else error).split())
    explains_itself = isinstance(error, ValueError | TypeError) and message.endswith(".")
    return message if explains_itself else f"{type(error).__name__}: {message}"
