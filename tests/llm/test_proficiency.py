"""The scale of the Codex study."""

from __future__ import annotations

import pytest

from fsr.llm.proficiency import LEVELS, Mark, proficiency

R, W, O = Mark.RIGHT, Mark.WRONG, Mark.OTHER_MODEL  # noqa: E741


@pytest.mark.parametrize(
    ("marks", "score"),
    [([], 0.0), ([W, O], 0.0), ([R, W, O], 0.25), ([R, O], 0.25), ([R, R, W], 0.5), ([R, R], 0.75), ([R], 1.0)],
)
def test_a_score_is_what_the_study_says(marks: list[Mark], score: float) -> None:
    assert proficiency(marks) == score
    assert proficiency(marks[::-1]) == score
    assert score in LEVELS
