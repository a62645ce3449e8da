"""Branches on data as selects: where values of a vector come together, too."""

from __future__ import annotations

import pytest

from fsr.backends.host.selects import selected

BODY = """  %1 = fcmp ogt float %0, 0.000000e+00
  br i1 %1, label %2, label %3
2:
  br label %3
3:
  PHI
  %5 = phi float [ 1.000000e+00, %2 ], [ 2.000000e+00, %entry ]
  ret void"""


@pytest.mark.parametrize(
    ("phi", "new"),
    [
        ("%4 = phi float [ %8, %2 ], [ %9, %entry ]", "select i1 %1, float %8, float %9"),
        ("%4 = phi <2 x float> [ zeroinitializer, %2 ], [ zeroinitializer, %entry ]", "[ zeroinitializer, %entry ]"),
        ("%4 = phi <2 x float> [ %8, %2 ], [ %9, %entry ]", ""),  # no select that is followed
        ("%4 = phi ptr [ %8, %2 ], [ %9, %entry ]", ""),
    ],
)
def test_no_block_is_left_that_something_comes_from(phi: str, new: str) -> None:
    found = selected(BODY.replace("PHI", phi).split("\n"), {"%1"}, set())
    assert (found is None) == (not new)
    if found is not None:
        assert any(new in line for line in found)
        assert not any("%2" in line for line in found)
        assert any("select i1 %1, float 1.000000e+00, float 2.000000e+00" in line for line in found)
