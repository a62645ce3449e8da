"""Hours of the day, local time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import time

from fsr.errors import UsageError


@dataclass(frozen=True, slots=True)
class Hours:
    """From ``first`` up to but not including ``last``; over midnight where last is not later than first."""

    first: time
    last: time

    @classmethod
    def parse(cls, text: str) -> Hours:
        """'09:00-17:30'. Raises UsageError."""
        found = re.fullmatch(r"\s*(\d{1,2}):(\d\d)\s*-\s*(\d{1,2}):(\d\d)\s*", text, re.ASCII)
        try:
            if found is None:
                raise ValueError
            first, last = time(int(found[1]), int(found[2])), time(int(found[3]) % 24, int(found[4]))
        except ValueError:
            raise UsageError(f"the quiet hours are {text!r}, expected hours like '09:00-17:30'") from None
        return cls(first, last)

    def __contains__(self, at: time) -> bool:
        if self.first < self.last:
            return self.first <= at < self.last
        return at >= self.first or at < self.last
