"""Values of checkpoints: every bit comes back, and arrays share what they shared."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmd_lab.checkpoint.encoding import Classes, Decoder, Encoder
from nmd_lab.checkpoint.file import Content, read, write


class Point(NamedTuple):
    x: float
    of: object


CLASSES = Classes([Point], {})

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers(), inner)
        | st.builds(Point, st.floats(), inner)
        | st.lists(inner).map(lambda items: deque(items, 5))
    ),
    max_leaves=8,
)


def there_and_back(value, path):
    encoder = Encoder(CLASSES)
    state = encoder.encode(value)
    write(path, Content({"state": state}, encoder.arrays))
    content = read(path)
    return Decoder(CLASSES, content.arrays).decode(content.header["state"])


@given(values)
def test_values_come_back(tmp_path_factory, value):
    back = there_and_back(value, tmp_path_factory.mktemp("values") / "run.nc")
    assert repr(back) == repr(value)
    assert type(back) is type(value)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, bool, np.intp])
def test_arrays_keep_bits_order_and_what_they_share(dtype, rng, tmp_path):
    base = (rng.normal(size=(6, 5)) * 10).astype(dtype)
    value = {
        "C": base,
        "again": base,
        "view": base[:, 1:4],
        "row": base[2],
        "F": np.asfortranarray(base),
        "transposed": base.T,
        "strided": np.arange(1000)[::200],
        "empty": np.zeros((0, 3), dtype),
        "number": np.dtype(dtype).type(3),
    }
    back = there_and_back(value, tmp_path / "run.nc")
    for name, array in value.items():
        assert np.array_equal(back[name], array), name
        assert back[name].dtype == array.dtype
        if name not in ("strided", "empty"):
            assert back[name].strides == array.strides, name
    back["C"][2] = 0
    assert back["again"] is back["C"]
    assert not back["view"][2].any()
    assert back["row"].any() == base[2].any()  # small views of large arrays are stored alone


@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.MT19937, np.random.Philox])
def test_random_numbers_go_on(bits, tmp_path):
    generator = np.random.Generator(bits(3))
    generator.normal(size=5)
    back = there_and_back(generator, tmp_path / "run.nc")
    assert np.array_equal(back.normal(size=9), generator.normal(size=9))


def test_an_unknown_class_is_refused():
    with pytest.raises(TypeError, match="cannot hold a object"):
        Encoder(CLASSES).encode([object()])
