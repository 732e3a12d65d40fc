"""Values of checkpoints: every bit comes back."""

from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmd_lab.checkpoint import Codec, read_file, write_file
from nmd_lab.model.fitted_values import Offsets

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers(), inner)
        | st.builds(Offsets, st.floats(), inner, inner)
        | st.lists(inner).map(lambda items: deque(items, 5))
    ),
    max_leaves=8,
)


def there_and_back(value, path):
    codec = Codec()
    write_file(path, {"state": codec.encode(value)}, codec.arrays)
    header, arrays = read_file(path)
    return Codec(arrays).decode(header["state"])


@given(values)
def test_values_come_back(tmp_path_factory, value):
    back = there_and_back(value, tmp_path_factory.mktemp("values") / "run.nc")
    assert repr(back) == repr(value)
    assert type(back) is type(value)


@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.MT19937, np.random.Philox])
def test_random_numbers_go_on(bits, tmp_path):
    generator = np.random.Generator(bits(3))
    generator.normal(size=5)
    back = there_and_back(generator, tmp_path / "run.nc")
    assert np.array_equal(back.normal(size=9), generator.normal(size=9))


class Foreign:
    settings = (1.0,)


@pytest.mark.parametrize("value", [object(), Foreign(), print])
def test_what_is_not_known_is_refused(value):
    with pytest.raises(TypeError, match="a checkpoint cannot hold a"):
        Codec().encode([value])


def test_a_file_names_no_class_from_elsewhere():
    ours = write_file.__module__
    for name in ("os:system", f"{ours}:json", f"{ours}:write_file"):
        with pytest.raises(LookupError, match="there is no class"):
            Codec().decode({"nmd": "object", "of": name, "items": [], "named": {}})
