"""One token of CUDA text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Token:
    """``kind``: string, number, name, punct or directive (a whole preprocessor line); ``start``: its offset."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """Offset just after it."""
        return self.start + len(self.text)
