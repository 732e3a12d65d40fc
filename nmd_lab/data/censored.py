"""`censored`: a table with limits as text becomes one of numbers and the masks of its limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from nmd_lab._runtime.checks import check_number, many

from .inputs import LIMITING
from .labels import any_frame, is_frame
from .number_texts import read_numbers
from .typed_table import kind_of_objects, plain_label


@any_frame
def censored(
    frame: Any, limits: float | Mapping[Any, float] | None = None
) -> tuple[Any, dict[str, pd.DataFrame]]:
    """Read values below or above a limit of detection, such as "<0.5" and "ND", as numbers.

    Parameters
    ----------
    frame : DataFrame of any library
        Table with numbers, and texts such as "<0.5", "≥ 200", "0,7", "1 200.5", "n.d." or "<LOD".
        Columns of other texts, dates and classes stay as they are.
    limits : float or dict, optional
        Limit of detection of the cells with a word such as "ND" or "<LOD": one for all columns, or
        one by column.

    Returns
    -------
    values : same type as `frame`
        Table with numeric columns (float64); a cell with a limit has this limit.
    limits : dict
        Keyword arguments of `impute`, `sample` and `complete`: "at_most" and "at_least", each a
        pandas.DataFrame of bool, without one that is True nowhere.  The sum
        ``limits["at_most"].sum()`` is the number of cells in each column.

    Raises
    ------
    ValueError
        If a limit of detection is not given, or not finite, or if a column of numbers has another
        text, or commas that may be decimal or not.
    TypeError
        If `frame` is no DataFrame, or a limit no number.

    See Also
    --------
    impute : Fill the cells within their limits.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> import nmd_lab as nmd
    >>> frame = pd.DataFrame({"lead": ["0.7", "<0.5", "1.2", "ND"], "zinc": [31.0, 8.0, 9.5, None]})
    >>> values, limits = nmd.censored(frame, limits={"lead": 0.3})
    >>> values["lead"].tolist()
    [0.7, 0.5, 1.2, 0.3]
    >>> {name: mask["lead"].tolist() for name, mask in limits.items()}
    {'at_most': [False, True, False, True]}

    Fill a generated table, each cell with a limit within it:

    >>> rng = np.random.default_rng(0)
    >>> metals = np.exp(rng.normal(size=(80, 1)) + 0.5 * rng.normal(size=(80, 3)))
    >>> frame = pd.DataFrame(metals.round(2), columns=["lead", "zinc", "iron"])
    >>> values, limits = nmd.censored(frame.astype(str).where(frame > 0.5, "<0.5"))
    >>> filled = nmd.impute(values, draws=50, random_state=0, **limits)
    >>> bool((filled[limits["at_most"]].max() <= 0.5).all())
    True
    """
    if not is_frame(frame):
        raise TypeError(f"frame is a {type(frame).__name__}: give a DataFrame.")
    by_name = limits if isinstance(limits, Mapping) else {}
    values, masks = frame.copy(), np.zeros((2, *frame.shape), dtype=bool)
    for k, (name, column) in enumerate(frame.items()):
        if name not in by_name and kind_of_objects(column) not in ("numbers", "words"):
            continue
        read, label = read_numbers(column), plain_label(name)
        unknown, words = column[read["is_unknown"]], column[read["is_word"]]
        if unknown.size:
            raise ValueError(
                f"column {label!r} has {unknown.iloc[0]!r}, which is no number or limit, or has a "
                "comma that may be decimal: write it as 0.5 or '<0.5', or empty it."
            )
        if words.size:
            limit = by_name.get(name) if isinstance(limits, Mapping) else limits
            if limit is None:
                raise ValueError(
                    f"column {label!r} has {many(words.size, 'cell')} such as {words.iloc[0]!r} "
                    f"below a limit that limits={limits!r} does not give: give "
                    f"limits={{{label!r}: ...}}."
                )
            limit = check_number(f"limits of {label!r}", limit)
            read["number"] = read["number"].mask(read["is_word"], limit)
        values.isetitem(k, read["number"])
        masks[..., k] = read["at_most"], read["at_least"]
    named = zip(LIMITING, masks, strict=True)
    return values, {
        name: pd.DataFrame(mask, frame.index, frame.columns) for name, mask in named if mask.any()
    }
