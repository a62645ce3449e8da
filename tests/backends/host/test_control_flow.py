"""Where the ways of branches meet, and from where they come there."""

from __future__ import annotations

from fsr.backends.host.control_flow import arriving, meeting_points
from fsr.backends.host.instrument import instrument

DIAMOND = {"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": ["a", "e"], "e": []}


def test_ways_meet_and_come_from():
    assert meeting_points(DIAMOND)["a"] == "d"
    assert arriving(DIAMOND, "a", "d") == {"b", "c"}
    assert arriving({"a": ["b", "d"], "b": ["d"], "d": []}, "a", "d") == {"a", "b"}


LOOP = """define void @f(ptr %0, ptr %1, i32 %2) {
  br label %4
4:
  %5 = phi i32 [ 0, %3 ], [ %12, %11 ]
  %6 = phi i32 [ 0, %3 ], [ %13, %11 ]
  %7 = load float, ptr %0, align 4
  %8 = fcmp ogt float %7, 0.000000e+00
  br i1 %8, label %9, label %11
9:
  %10 = udiv i32 %6, %2
  br label %11
11:
  %12 = phi i32 [ %10, %9 ], [ %5, %4 ]
  %13 = add i32 %6, 1
  %14 = icmp eq i32 %13, %2
  br i1 %14, label %15, label %4
15:
  store i32 %12, ptr %1, align 4
  ret void
}
"""


def test_what_a_branch_on_data_chooses_is_followed_and_what_it_only_passes_is_not():
    text = instrument(LOOP).text
    assert "@fsr_t_rejoin_i32(i32 %s.12.p, i32 %12)" in text
    assert "%s.6 =" not in text
    assert "%s.13" not in text
