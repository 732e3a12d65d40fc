"""Refusals: an exception with one sentence, which has some words."""

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pytest

KINDS = (ValueError, TypeError, KeyError, IndexError, OSError)


def check_sentence(error: BaseException, words: str) -> None:
    """Check that an exception has the words of a pattern, and is one sentence."""
    message = str(error.args[0])
    assert re.search(words, message), message
    assert "\n" not in message
    assert not re.search(r"[.!?] +[A-Z]", message), f"more than one sentence: {message}"


def check_refused(call: Callable[[], Any], words: str) -> None:
    """Check that a call is refused in one sentence with the words of a pattern."""
    with pytest.raises(KINDS) as caught:
        call()
    check_sentence(caught.value, words)


def check_all_refused(calls: Iterable[tuple[Any, ...]]) -> None:
    """Check a table of words, functions, and what each of them refuses, or no more than a call."""
    for words, call, *values in calls:
        for each in [partial(call, value) for value in values] or [call]:
            check_refused(each, words)
