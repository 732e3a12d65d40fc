"""Matrices in MATLAB files, beside SciPy's reader."""

from __future__ import annotations

import io

import numpy as np
import pytest
from scipy.io import savemat

from nmd_lab import datasets
from nmd_lab.datasets._matlab import read_matrix_of


def stored(**variables):
    """Return the contents of a MATLAB file."""
    stream = io.BytesIO()
    compressed = variables.pop("compressed", False)
    savemat(stream, variables, do_compression=compressed)
    return stream.getvalue()


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "f8", "u1", "i2", "i4"])
def test_a_matrix_is_found_by_its_name(rng, dtype, compressed):
    X = (100 * rng.random((5, 3))).astype(dtype)
    content = stored(first=np.eye(2), X=X, text="abc", compressed=compressed)
    np.testing.assert_array_equal(read_matrix_of(content, "X"), X.astype(float))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not of version 5"),
        (stored(Y=np.eye(2)), "no real matrix X"),
        (stored(X=np.eye(2) * 1j), "no real matrix X"),
        (stored(X=np.full((2, 2), np.nan)), "not finite"),
        (stored(X=np.eye(9))[:-50], "breaks off"),
        (stored(X=np.eye(9), compressed=True)[:150] + bytes(40), "breaks off|compression"),
    ],
    ids=["empty", "no X", "complex", "NaN", "cut", "cut and compressed"],  # a file has its date
)
def test_other_files_are_refused(content, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        read_matrix_of(content, "X")
    (tmp_path / "CBCL.mat").write_bytes(content)
    with pytest.raises(ValueError, match="is no MATLAB file with a matrix X of 361 rows"):
        datasets.cbcl(tmp_path)


def test_damage_never_ends_the_process(rng):
    """SciPy's reader crashed on some of these."""
    good = stored(X=rng.random((361, 2)).astype("f4"))
    for _ in range(3000):
        content = bytearray(good)
        for at in rng.integers(100, 260, size=rng.integers(1, 6)):
            content[at] = rng.integers(256)
        try:
            shape = read_matrix_of(bytes(content), "X").shape
        except ValueError:
            continue
        assert shape == (361, 2)
