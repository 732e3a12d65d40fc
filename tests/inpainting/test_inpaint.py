"""`inpaint`: pixels that are missing, what stays as it is, and what is told of the progress."""

import numpy as np
import pytest
import xarray as xr
from helpers import check_all_refused
from scipy import ndimage
from sklearn.datasets import load_sample_image

import nmd_lab as nmd
from nmd_lab.inpainting import similar_patches as similar
from nmd_lab.inpainting.inpaint import Plan, default_grid, fill_by_groups


@pytest.fixture(scope="module")
def stripes():
    """A smooth texture of 48 x 48 pixels, and which of them are seen."""
    y, x = np.mgrid[:48, :48]
    picture = np.sin(x / 2) + np.sin(y / 3 + x / 5)
    return picture, np.random.default_rng(0).random(picture.shape) > 0.5


def error(filled, picture, seen):
    return np.sqrt(np.mean((filled["picture"].values - picture)[~seen] ** 2))


def test_texture_is_filled_and_seen_pixels_stay_as_they_are(stripes):
    picture, seen = stripes
    before = picture.copy(), seen.copy()
    filled = nmd.inpaint(picture, seen, groups=4, random_state=0)
    np.testing.assert_array_equal((picture, seen), before)
    assert error(filled, picture, seen) < 0.02 * picture.std()
    np.testing.assert_array_equal(filled["picture"].values[seen], picture[seen])
    assert not filled["std"].values[seen].any()
    assert filled["std"].values[~seen].all()


def test_intervals_cover_smooth_and_rough_pixels():
    """With one factor for all, they cover three quarters of the roughest fifth, and all smooth."""
    picture = load_sample_image("china.jpg")[100:260, 200:360].mean(axis=2)
    missing = np.random.default_rng(0).random(picture.shape) < 0.6
    filled = nmd.inpaint(picture, ~missing, random_state=0)
    covered = np.abs(filled["picture"] - picture).values < 1.645 * filled["std"].values
    roughness = ndimage.generic_filter(picture, np.std, 5)[missing]
    fifths = np.array_split(covered[missing][np.argsort(roughness)], 5)
    assert all(0.8 < fifth.mean() < 1.0 for fifth in fifths)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
def test_the_dtype_stays(stripes, dtype):
    picture, seen = stripes
    scaled = (50 * (picture + 2)).astype(dtype)
    filled = nmd.inpaint(scaled, seen, groups=1, random_state=0)
    assert filled["picture"].dtype == dtype
    assert error(filled, scaled.astype(float), seen) < 5


def test_colours_of_a_sensor_with_the_period_of_the_grid_are_filled(stripes):
    """Learned from the patches of the grid alone, the error is a quarter of the deviation."""
    picture, _ = stripes
    colour = np.stack([picture, 1 - picture], axis=-1)
    one = (np.indices(picture.shape) % 2 == 0).all(axis=0)
    mosaic = np.stack([one, ~one], axis=-1)
    filled = nmd.inpaint(colour, mosaic, groups=2, random_state=0)
    assert error(filled, colour, mosaic) < 0.12 * colour.std()


def test_labels_come_back_and_a_mask_has_the_dimensions_of_space(stripes):
    picture, seen = stripes
    both, lat = np.stack([picture, -picture]), {"lat": np.arange(48.0)}
    bands = xr.DataArray(both, lat, ("band", "lat", "lon"), attrs={"units": "K"})
    filled = nmd.inpaint(bands, seen, groups=1, random_state=0)
    np.testing.assert_array_equal(filled["std"].values == 0, np.stack([seen, seen]))
    assert filled["picture"].attrs == {"units": "K"}
    xr.testing.assert_equal(filled["std"].coords["lat"], bands.coords["lat"])


def test_photon_counts_are_cleaned_by_their_own_noise(stripes):
    mean = 8 * np.exp(stripes[0])
    counts = np.random.default_rng(0).poisson(mean)
    cleaned = (
        nmd.inpaint(counts.astype(float), loss=loss, denoise=True, groups=2, random_state=0)
        for loss in ("kl", "frobenius")
    )
    by_counts, by_one_noise = (np.std(each["picture"].values - mean) for each in cleaned)
    assert by_counts < by_one_noise


def test_a_wide_region_is_filled_from_coarser_pixels_with_a_warning():
    slope = np.add.outer(np.arange(48.0), np.arange(48.0))
    seen = np.ones(slope.shape, bool)
    seen[12:34, 12:34] = False
    with pytest.warns(nmd.warnings.NMDWarning, match="about 21 pixels wide, and patches 8"):
        filled = nmd.inpaint(slope, seen, groups=1, random_state=0)
    assert error(filled, slope, seen) < 0.05 * slope.std()


def test_results_are_bit_for_bit_identical_with_one_and_two_threads(stripes, monkeypatch):
    picture, seen = stripes
    results = []
    for threads in (1, 2):
        monkeypatch.setattr("nmd_lab._runtime.machine.all_threads", lambda n=threads: n)
        results.append(nmd.inpaint(picture, seen, groups=2, random_state=0))
    xr.testing.assert_identical(*results)


def test_a_stack_is_filled(stripes):
    picture, _ = stripes
    stack = np.stack([np.roll(picture, shift, axis=1)[:24, :24] for shift in range(6)])
    seen = np.random.default_rng(0).random(stack.shape) > 0.5
    filled = nmd.inpaint(stack, seen, groups=1, random_state=0)
    assert error(filled, stack, seen) < 0.1 * picture.std()


@pytest.mark.parametrize("method", ["sample", "complete"])
def test_a_nonlinearity_is_that_of_the_call_of_this_name(stripes, method):
    picture, seen = stripes
    clipped = np.clip(picture, -1, 1)
    options = {"method": method, "nonlinearity": nmd.MinMax(-1, 1), "step": 4, "draws": 10}
    filled = nmd.inpaint(clipped, seen, random_state=0, **options)
    assert filled["picture"].min() >= -1
    assert filled["picture"].max() <= 1
    assert error(filled, clipped, seen) < 0.15 * clipped.std()


X = np.arange(64.0).reshape(8, 8)


@pytest.mark.parametrize("picture", [X, np.ones((12, 9))], ids=["one patch", "one value"])
def test_pictures_with_little_in_them_are_filled(picture):
    filled = nmd.inpaint(np.where(np.arange(picture.shape[1]) == 4, np.nan, picture))
    assert np.all((filled["picture"] >= 0) & (filled["picture"] <= 64))
    assert np.isfinite(filled["std"]).all()


def test_the_middle_of_a_wide_hole_is_as_unsure_as_the_picture():
    photo = load_sample_image("china.jpg")[150:230, 300:380].mean(axis=2)
    seen = np.ones(photo.shape, bool)
    seen[20:60, 20:60] = False
    with pytest.warns(nmd.warnings.NMDWarning, match="are uncertain"):
        filled = nmd.inpaint(photo, seen, method="complete", random_state=0)
    std = filled["std"].to_numpy()
    assert std[40, 40] == pytest.approx(photo[seen].std())
    assert std[20, 40] < std[28, 40] < std[34, 40] < std[40, 40]  # 1, 9, 15 pixels inside


@pytest.mark.filterwarnings("ignore:divide by zero")
def test_refusals():
    check_all_refused([
        ("method='draw' is unknown", lambda: nmd.inpaint(X, method="draw")),
        ("picture has no seen pixel", lambda: nmd.inpaint(X, X > 99)),
        ("picture has no seen pixel", lambda: nmd.inpaint(np.full((8, 8), np.nan))),
        (r"observed has shape \(4, 8\)", lambda: nmd.inpaint(X, X[:4] > 9)),
        (r"observed has shape \(8,\)", lambda: nmd.inpaint(X, X[0] > 3)),
        ("observed has dtype float64", lambda: nmd.inpaint(X, X)),
        ("picture has infinite pixels", lambda: nmd.inpaint(X / (X != 3))),
        ("picture is a list", lambda: nmd.inpaint([["a"]])),
        ("size=9 exceeds the 8 pixels of y", lambda: nmd.inpaint(X, size=9)),
        ("step=9 exceeds size", lambda: nmd.inpaint(X, step=9)),
        ("groups=0 is too small", lambda: nmd.inpaint(X, groups=0)),
        ("random_state='x' is not a seed", lambda: nmd.inpaint(X, random_state="x")),
        ("picture has negative pixels", lambda: nmd.inpaint(X - 9, loss="kl")),
        ("picture", lambda: nmd.inpaint(X - 9, loss="kl", nonlinearity="exp")),
    ])  # fmt: skip


# Progress ---------------------------------------------------------------------------------------

PIXELS = np.add.outer(np.sin(np.arange(60) / 5), np.cos(np.arange(50) / 7))
PIXELS = np.where(np.random.default_rng(0).random(PIXELS.shape) < 0.2, np.nan, PIXELS)


class Ended(Exception):
    """What ends a filling."""


def fill(tell):
    grid = default_grid(PIXELS, "complete")
    return fill_by_groups(PIXELS, grid, Plan(2, 1, tell=tell), np.random.default_rng(0))


def test_each_block_is_told_of_and_an_error_ends_the_filling_there(monkeypatch):
    monkeypatch.setattr(similar, "N_CORNERS", 20)
    parts = []
    fill(lambda part, _: parts.append(part))
    assert parts == sorted(parts)
    assert parts[0] == 0
    assert parts[-1] < 1
    blocks = len(default_grid(PIXELS, "complete").corners) / 20
    assert len(parts) > 2 * blocks  # of the pass, and of the one with all that is seen
    for most in (1, 3, len(parts) // 2, len(parts)):
        heard = []

        def tell(part, _, heard=heard, most=most):
            heard.append(part)
            if len(heard) == most:
                raise Ended

        with pytest.raises(Ended):
            fill(tell)
        assert heard == parts[:most]
