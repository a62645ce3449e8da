"""What a model changed, whatever it was made on: so that what failed on one candidate is not tried on the next.

Models say the same again, with other numbers at best. Of a change that was right and gained nothing one is enough, of
those that were wrong a few; numbers are tuned by moves, which know what is legal.
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

WRONG_OFTEN = 2  # of changes that differ in numbers only; that change itself is not made again
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

    _spent: set[str] = field(default_factory=set)
    _wrong: Counter[str] = field(default_factory=Counter)
    _good: set[str] = field(default_factory=set)

    def told(self, provenance: Mapping[str, Any], *, right: bool, gained: bool) -> None:
        """How a candidate ended that a change led to. gained: over what it was made on."""
        name, shape = provenance.get("change"), provenance.get("shape")
        if gained:
            self._good |= {str(name), str(shape)}
            return
        self._wrong[str(shape)] += not right
        self._spent.add(str(name))
        if right or self._wrong[str(shape)] >= WRONG_OFTEN:
            self._spent.add(str(shape))

    def spent(self, provenance: Mapping[str, Any], *, repair: bool = False) -> bool:
        """Whether a change was tried often enough. ``repair``: a number may be all that was wrong."""
        looked_at = ("change",) if repair else ("change", "shape")
        return any(n in self._spent and n not in self._good for n in (str(provenance.get(key)) for key in looked_at))


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
