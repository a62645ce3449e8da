"""What failed on one candidate is not tried on the next, whatever numbers stand in it."""

from __future__ import annotations

from dataclasses import replace

from fsr.llm.changes import Change, Changes
from tests.search.scripted import BASELINE

OTHER = replace(BASELINE, source=f"__device__ int other;\n{BASELINE.source}")


def change(new: str, *, of: object = BASELINE) -> dict[str, object]:
    assert of in (BASELINE, OTHER)
    base = OTHER if of is OTHER else BASELINE
    return dict(Change.between(base, replace(base, source=base.source.replace("1.0f", new))).noted())


def test_a_change_is_the_same_on_another_candidate_and_has_the_shape_of_its_like() -> None:
    assert change("2.0f") == change("2.0f", of=OTHER)
    assert change("2.0f")["change"] != change("3.0f")["change"]
    assert change("2.0f")["shape"] == change("3.0f")["shape"] != change("x[1]")["shape"]
    assert "x [ 0 ] = 2.0f" in str(change("2.0f")["did"])


def test_what_was_right_and_no_faster_is_let_alone_with_its_like() -> None:
    known = Changes()
    known.told(change("2.0f"), right=True, gained=False)
    assert known.spent(change("2.0f", of=OTHER))
    assert known.spent(change("3.0f"))
    assert not known.spent(change("x[1]"))


def test_what_was_wrong_is_let_alone_and_so_are_its_like_after_a_second_try() -> None:
    known = Changes()
    known.told(change("2.0f"), right=False, gained=False)
    assert known.spent(change("2.0f", of=OTHER))
    assert not known.spent(change("3.0f"))
    known.told(change("3.0f"), right=False, gained=False)
    assert known.spent(change("4.0f"))
    assert not known.spent(change("4.0f"), repair=True)
    assert not known.spent(change("x[1]"))


def test_what_gained_once_may_be_tried_again() -> None:
    known = Changes()
    known.told(change("2.0f"), right=True, gained=True)
    for _ in range(3):
        known.told(change("3.0f"), right=True, gained=False)
    assert not known.spent(change("2.0f", of=OTHER))
    assert not known.spent(change("4.0f"))
