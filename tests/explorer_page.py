"""What a page shows of an explorer and what a user does there, without a browser."""

from __future__ import annotations

from typing import Any

import numpy as np
from waiting import PATIENCE


def act(explorer: Any, do: str, *buffers: bytes, **message: Any) -> None:
    """Send the message of an action, as the front end does."""
    explorer._handle_custom_msg({"do": do, **message}, list(buffers))


def enter(explorer: Any, name: str, value: Any) -> None:
    """Enter a value in a control."""
    act(explorer, "set", name=name, value=value)


def control(explorer: Any, name: str) -> dict[str, Any]:
    """Return what a control shows."""
    return next(each for each in explorer.controls if each["name"] == name)


def button(explorer: Any, name: str) -> dict[str, Any]:
    """Return what a button shows."""
    return explorer.status["buttons"][name]


def said(explorer: Any) -> str:
    """Return the status line."""
    return explorer.status["message"]


def table(explorer: Any, name: str) -> dict[str, Any]:
    """Return a table."""
    return next(each for each in explorer.tables if each["name"] == name)


def picture(explorer: Any, name: str) -> Any:
    """Return the values of a tile, (count, height, width, channels); None if it is not shown."""
    part = explorer.pictures
    values = explorer.modelled if name == "reconstruction" else part[name]
    if values is None:
        return None
    shape = (part["count"], part["height"], part["width"], part["channels"])
    return np.frombuffer(values, "<f4").reshape(shape)


PLAIN = {"nonlinearity": "relu", "rank": 5, "alpha": 0.0, "missing": 0.0}
"""Settings of a ReLU model of all entries, none of them to be chosen."""


def plain(kind: Any, *data: Any, **settings: Any) -> Any:
    """Return a state or an explorer with plain settings, but for those that are given."""
    return kind(*data, **PLAIN | settings)


def done(explorer: Any) -> Any:
    """Run a fit to its end, and return the explorer."""
    explorer.start()
    assert explorer.join(PATIENCE)
    return explorer


def arrays_of(curves: Any) -> dict[str, Any]:
    """Return the points (2, n) of the curves of a page by key."""
    return {
        curve["key"]: np.frombuffer(curve["points"], dtype="<f8").reshape(2, -1)
        for panel in curves["panels"]
        for curve in panel["curves"]
        if curve["points"]
    }
