"""What a model changed, whatever it was made on: so that what failed on one candidate is not tried on the next.

Models say the same again, with other numbers at best. Of a change that was wrong, and of those that differ from it in
numbers only, a few are enough; numbers are tuned by moves, which know what is legal.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any

from fsr.identity import digest
from fsr.records import Candidate, Json
from fsr.source.tokens import tokenize

WRONG_OFTEN, IDLE_OFTEN = 1, 2  # tries of one change, or of those that differ in numbers only, then it is let alone
LONGEST = 60
_NUMBER = re.compile(r"(?<![\w.])\d[\w.]*")


@dataclass(frozen=True, slots=True)
class Change:
    """name: of the lines that went and came. shape: the same whatever their numbers. words: for whoever reads it."""

    name: str
    shape: str
    words: str

    @classmethod
    def between(cls, base: Candidate, candidate: Candidate) -> Change:
        """What leads from one text to the other; comments and layout aside."""
        one, other = _lines(base), _lines(candidate)
        hunks = [(one[i:j], other[k:m]) for tag, i, j, k, m in _opcodes(one, other) if tag != "equal"]
        plan = "" if base.plan == candidate.plan else repr(candidate.plan)
        text = repr((hunks, plan))
        words = "the launch" if not hunks else f"{_first(hunks[0][0])} -> {_first(hunks[0][1])}"
        return cls(digest(text)[2:10], digest(_NUMBER.sub("0", text))[2:10], words)

    def noted(self) -> dict[str, Json]:
        """What a provenance says of it."""
        return {"change": self.name, "shape": self.shape, "did": self.words}


@dataclass(slots=True)
class Changes:
    """What became of changes, by name and by shape."""

    _wrong: Counter[str] = field(default_factory=Counter)
    _idle: Counter[str] = field(default_factory=Counter)
    _good: set[str] = field(default_factory=set)

    def told(self, provenance: Mapping[str, Any], *, right: bool, gained: bool) -> None:
        """How a candidate ended that a change led to. gained: over what it was made on."""
        name, shape = provenance.get("change"), provenance.get("shape")
        if gained:
            self._good |= {str(name), str(shape)}
        elif right:
            self._idle[str(shape)] += 1
        else:
            self._wrong[str(name)] += 1
            self._idle[str(shape)] += 1

    def spent(self, provenance: Mapping[str, Any], *, repair: bool = False) -> bool:
        """Whether a change was tried often enough. ``repair``: a number may be all that was wrong."""
        name, shape = str(provenance.get("change")), str(provenance.get("shape"))
        if self._wrong[name] >= WRONG_OFTEN and name not in self._good:
            return True
        return not repair and self._idle[shape] >= IDLE_OFTEN and shape not in self._good


def _lines(candidate: Candidate) -> list[str]:
    rows: dict[int, list[str]] = {}
    at = line = 0
    for token in tokenize(candidate.source):
        line, at = line + candidate.source.count("\n", at, token.start), token.start
        rows.setdefault(line, []).append(token.text)
    return [" ".join(row) for row in rows.values()]


def _opcodes(one: list[str], other: list[str]) -> Sequence[tuple[str, int, int, int, int]]:
    return SequenceMatcher(None, one, other, autojunk=False).get_opcodes()


def _first(lines: list[str]) -> str:
    return lines[0][:LONGEST] if lines else "nothing"
