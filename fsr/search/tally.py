"""What somebody's proposals came to: kept for each proposer, and for each of a model's roles."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Tally:
    """``proposed``: how many were evaluated; ``right``: how many of them computed the same; ``gains``: how many made
    the best better; ``earned``: log speed-up; ``cost``: what they took, in the unit of whoever keeps it."""

    proposed: int = 0
    right: int = 0
    gains: int = 0
    earned: float = 0.0
    cost: float = 0.0

    def ended(self, gain: float, *, right: bool) -> None:
        """One more is known. ``gain``: log improvement of the best, 0 for none."""
        self.right += right
        self.gains += gain > 0.0
        self.earned += gain
