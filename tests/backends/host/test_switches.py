"""Switches become chains of branches that lead to the same blocks with the same values."""

from __future__ import annotations

from fsr.backends.host.switches import branches_for_switches

TEXT = """define i32 @f(i32 %0) {
  switch i32 %0, label %3 [
    i32 4, label %2
    i32 7, label %4
    i32 9, label %4
  ]

2:                                                ; preds = %1
  br label %4

3:                                                ; preds = %1
  br label %4

4:                                                ; preds = %1, %1, %2, %3
  %5 = phi i32 [ 10, %2 ], [ 20, %3 ], [ 30, %1 ], [ 30, %1 ]
  ret i32 %5
}
"""


def test_every_case_becomes_a_branch_and_phis_name_where_it_comes_from():
    found = branches_for_switches(TEXT)
    assert "switch i32" not in found
    assert "icmp eq i32 %0, 4" in found
    assert "br i1 %fsr.switch.0.is.2, label %4, label %3" in found
    assert "%5 = phi i32 [ 10, %2 ], [ 20, %3 ], [ 30, %fsr.switch.0.1 ], [ 30, %fsr.switch.0.2 ]" in found


def test_a_text_without_switches_stays_as_it_is():
    text = "define void @g() {\n  ret void\n}\n"
    assert branches_for_switches(text) == text
