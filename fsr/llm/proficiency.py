"""How good a model is at a programming model, from its first suggestions: the scale of the Codex study.

Godoy, Valero-Lara, Teranishi, Balaprakash and Vetter, "Evaluation of OpenAI Codex for HPC Parallel Programming Models
Kernel Generation" (arXiv 2306.15121), section 2, on the first ten suggestions.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

SUGGESTIONS = 10
LEVELS = {0.0: "non-knowledge", 0.25: "novice", 0.5: "learner", 0.75: "proficient", 1.0: "expert"}


class Mark(Enum):
    """What one suggestion was: right; wrong, but in the programming model that was asked for; in another one."""

    RIGHT = "right"
    WRONG = "wrong"
    OTHER_MODEL = "other model"


def proficiency(marks: Sequence[Mark]) -> float:
    """0 when no suggestion is right; 0.25 when one is and some are in another programming model; 0.5 when one is and
    all are in the right model; 0.75 when all of several are right; 1 when the only suggestion is."""
    if Mark.RIGHT not in marks:
        return 0.0
    if set(marks) == {Mark.RIGHT}:
        return 1.0 if len(marks) == 1 else 0.75
    return 0.25 if Mark.OTHER_MODEL in marks else 0.5
