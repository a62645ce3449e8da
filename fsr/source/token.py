"""One token of CUDA text."""

from __future__ import annotations

from typing import NamedTuple


class Token(NamedTuple):
    """``kind``: string, number, name, punct or directive (a whole preprocessor line); ``start``: its offset. A tuple,
    since a text has thousands of them."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """Offset just after it."""
        return self.start + len(self.text)
