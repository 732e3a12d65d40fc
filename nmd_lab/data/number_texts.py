"""Numbers as laboratories write them: 0,7 or 1 200.5, limits such as "<0.5", and words such as ND.

A column has either decimal points or decimal commas.  The other mark separates thousands, as a
space or an apostrophe may.

>>> read_numbers(pd.Series(["< 0,5", "1 200,5", "> 3", "n.d.", "lost"]))["number"].tolist()
[0.5, 1200.5, 3.0, nan, nan]
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

BELOW, ABOVE = "<≤⩽", ">≥⩾"
"""Signs before an upper and a lower limit, each perhaps with "="."""

WORDS = r"n[./ ]?[dn]\.?|not detected|non-?detect|traces?|l?lo[dq]|l[dq]|m?dl|rl|b[dq]l|blo?[dq]"
"""Words for "below a limit" without a number."""


def read_numbers(values: Any) -> pd.DataFrame:
    """Return what each text or number of a pandas.Series says.

    Returns
    -------
    pandas.DataFrame
        number : number or limit, NaN where there is none, or where a comma may be decimal or not;
        at_most, at_least : whether there is such a limit; is_word : whether it is a word for "below
        a limit"; is_unknown : whether there is a text of another kind.
    """
    is_text = pd.Series([isinstance(value, str) for value in values], values.index, dtype=bool)
    text = values.where(is_text, "").astype(str).str.normalize("NFKC").str.strip().str.lower()
    parts = text.str.extract(f"^=?([{BELOW}{ABOVE}]?)=? *(.*)$").fillna("")
    sign, rest = parts[0], parts[1]
    point, comma = _numbers(rest, ".", ","), _numbers(rest, ",", ".")
    number = comma if comma.count() > point.count() else point
    if comma.count() == point.count():
        number = number.mask((point != comma) & rest.str.contains(","))
    others = pd.to_numeric(values.mask(is_text), errors="coerce").astype(np.float64)
    number = number.where(is_text, others)
    at_least = sign.isin(list(ABOVE))
    is_word = rest.str.fullmatch(WORDS) & ~at_least
    read = {"number": number.astype(np.float64), "at_most": sign.isin(list(BELOW)) | is_word}
    is_unknown = number.isna() & values.notna() & ~is_word
    return pd.DataFrame(read | {"at_least": at_least, "is_word": is_word, "is_unknown": is_unknown})


def _numbers(text: Any, mark: str, other: str) -> Any:
    """Return texts in lower case as numbers with a decimal mark; the other one is of thousands."""
    groups = f"[{other}'’ ]"
    whole = rf"[-+]?(?:\d+|[1-9]\d{{0,2}}(?:{groups}\d{{3}})+)?"
    plain = text.where(text.str.fullmatch(rf"{whole}(?:[{mark}]\d*)?(?:e[-+]?\d+)?"))
    plain = plain.str.replace(groups, "", regex=True).str.replace(mark, ".", regex=False)
    return pd.to_numeric(plain, errors="coerce")
