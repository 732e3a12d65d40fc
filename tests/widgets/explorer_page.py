"""What a page shows of an explorer and what a user does there, without a browser."""

import fits
import matplotlib.pyplot as plt
import numpy as np
from helpers import PATIENCE, people, with_holes
from sklearn.datasets import load_sample_image

from nmd_lab import datasets, widgets


def act(explorer, do, *buffers, **message):
    """Send the message of an action, as the front end does."""
    explorer._handle_custom_msg({"do": do, **message}, list(buffers))


def acted(explorer, do, **message):
    """Send the message of an action, and wait for what follows it."""
    act(explorer, do, **message)
    assert explorer.join(PATIENCE)


def enter(explorer, name, value):
    """Enter a value in a control."""
    act(explorer, "set", name=name, value=value)


def control(explorer, name):
    """Return what a control shows."""
    return next(each for each in explorer.controls if each["name"] == name)


def sentence(explorer):
    """Return the sentence on top."""
    return "".join(words for words, _ in explorer.status["sentence"]).replace("\N{WORD JOINER}", "")


def table(explorer, name):
    """Return a table."""
    return next(each for each in explorer.tables if each["name"] == name)


def picture(explorer, name):
    """Return the values of a tile, (count, height, width, channels); None if it is not shown."""
    part = explorer.pictures
    values = explorer.modelled if name == "reconstruction" else part[name]
    shape = [part[each] for each in ("count", "height", "width", "channels")]
    return None if values is None else np.frombuffer(values, "<f4").reshape(shape)


EVIL = "</script><script>window.hit = 1</script><img src=x onerror='window.hit = 1'>"
"""A name of a column that does harm where it is taken for HTML."""

COLOUR = load_sample_image("china.jpg")[120:200, 240:340]
GREY = COLOUR.mean(axis=2) / 255
"""A part of a photograph in colours, in bytes, and the same in grey between 0 and 1."""

PLAIN = {"nonlinearity": "relu", "rank": 5, "alpha": 0.0, "missing": 0.0}
"""Settings of a ReLU model of all entries, none of them to be chosen."""


def plain(kind, *data, **settings):
    """Return a state or an explorer with plain settings, but for those that are given."""
    return kind(*data, **PLAIN | settings)


def done(explorer):
    """Run a fit to its end, and return the explorer."""
    explorer.start()
    assert explorer.join(PATIENCE)
    return explorer


def sure(explorer):
    """Draw intervals, wait for the draws, and return the explorer."""
    explorer.how_sure()
    assert explorer.join(PATIENCE)
    return explorer


def executed(code, **names):
    """Run copied code, in which few draws are enough, and return its names."""
    exec(code, names)
    plt.close("all")
    return names


def ended(state):
    """Run a state to its end, and return its fit."""
    state.start()
    assert state.fit.join(PATIENCE)
    assert state.fit.phase in ("finished", "stopped"), state.fit.message
    return state.fit.result


def painted(explorer, points, radius=3.0, *, picture=0, **how):
    """Draw a stroke of the brush, and wait for what follows it."""
    acted(explorer, "brush", picture=picture, points=points, radius=radius, **how)


def repeats(state, **variable):
    """Run the code of a state or an explorer, and compare its factor with that of the fit.

    Data that are neither a file nor from the library are given by the name of their variable.
    """
    shown, state = state, getattr(state, "state", state)
    exec(state.code(*variable) if variable else shown.code(), names := dict(variable))
    np.testing.assert_array_equal(names["fit"].W, state.fit.result.W)


def curve(explorer, label):
    """Return the points (2, n) of a curve of the page."""
    points = (point for point in explorer.curves["points"] if point["label"] == label)
    return np.transpose([(point["x"], point["y"]) for point in points])


# An explorer of each kind, which has fitted what can be fitted -----------------------------------


def digits():
    return sure(done(plain(widgets.explore, datasets.digits(60), iterations=20, draws=10)))


def ratings():
    settings = {"rank": 3, "alpha": 2.0, "nonlinearity": "identity", "iterations": 20}
    explorer = done(widgets.Explorer(data="generated", **settings))
    act(explorer, "ask", name="row", value="you")
    return explorer


def mixed():
    frame = with_holes(people(60)).rename(columns={"kg": EVIL})
    return sure(done(widgets.explore(frame, rank=2, alpha=1.0, iterations=20, draws=10)))


def photograph():
    grey = np.add.outer(np.sin(np.arange(60) / 9), np.cos(np.arange(80) / 7))
    return done(widgets.explore(grey, groups=2))


def matrix():
    X = np.random.default_rng(0).random((70, 80))
    return done(plain(widgets.explore, X, rank=3, iterations=5, missing=0.1))


KINDS = {
    "digits": digits,
    "ratings": ratings,
    "table": mixed,
    "photograph": photograph,
    "matrix": matrix,
    "study": lambda: widgets.explore(fits.study()),
    "fit": lambda: widgets.explore(fits.of_digits()),
    "posterior": lambda: widgets.explore(fits.of_people()[2]),
}
