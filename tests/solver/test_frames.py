"""A call is a few frames of Python above the compiled loops."""

import sys

import nmd_lab as nmd
from nmd_lab.solver.split_variable import SplitVariable

MOST = 9


def test_few_frames_between_the_call_and_the_first_kernel(small, monkeypatch):
    names, make = [], SplitVariable.__init__

    def spied(self, *arguments, **options):
        make(self, *arguments, **options)
        kernel = self.update_pass

        def spy(*entries):
            frame = sys._getframe(1)
            while not names or names[-1] != "decompose":
                names.append(frame.f_code.co_name)
                frame = frame.f_back
            return kernel(*entries)

        self.update_pass = spy

    monkeypatch.setattr(SplitVariable, "__init__", spied)
    nmd.decompose(small, 3, "relu", max_iter=2, tol=0)
    assert len(names[:-1]) <= MOST, names
