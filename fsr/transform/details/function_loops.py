"""unroll-functions: loops of constant length in the functions of the file, unrolled whole, and those of kernels that go
through a thread's arrays.

An array that a loop goes through lies in local memory unless the loop is unrolled: only then are its elements
registers. Of a cipher's or a hash's rounds, of a window that is sorted, a compiler that decides by size leaves some as
loops.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from fsr.analysis.instances import instances
from fsr.errors import FsrError
from fsr.records import Candidate
from fsr.source.items import parse_items
from fsr.source.macros import macros
from fsr.source.token import Token
from fsr.source.tokens import tokenize
from fsr.transform.details.constant_loops import MOST_TURNS, constant_loops
from fsr.transform.protocol import Move, Subject

GAIN = 1.15
_PRAGMA = "#pragma unroll\n"


@dataclass(frozen=True, slots=True)
class UnrollFunctions:
    """A pragma on every such loop that has none."""

    name: str = "unroll-functions"
    aims_at: frozenset[str] = frozenset(["latency", "instructions", "compute", "uncoalesced"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """One for the file."""
        if unrollable(subject.candidate):
            yield Move(self.name, "plan", (), GAIN)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with the pragmas."""
        old = subject.candidate
        edits = [(place, place, text) for place, text in pragmas(old.source, unrollable(old))]
        return replace(old, source=spliced(old.source, edits), actions=(*old.actions, move.name))


def unrollable(candidate: Candidate) -> list[int]:
    """Where the loops begin, in the order of the text."""
    text = candidate.source
    found, seen = set(_loops(text)), dict[int, int]()
    every = instances(candidate)
    for one in every:
        for at in {loop.span[0] for loop in constant_loops(one) if loop.span is not None and not loop.pragmas}:
            seen[at] = seen.get(at, 0) + 1
    calls = Counter(one.form.span for one in every)
    for (start, end), often in ((span, n) for span, n in calls.items() if span is not None):
        # What one call alone has constant is unrolled for none.
        found |= {in_characters(text, at) for at, n in seen.items() if start <= at < end and n == often}
    return sorted(at for at in found if re.match(r"for\b", text[at:]) and _stands_alone(text, at))


def pragmas(text: str, places: Iterable[int]) -> Iterator[tuple[int, str]]:
    """What to insert where, so that a loop has its pragma on a line of its own."""
    for place in places:
        line = text.rfind("\n", 0, place) + 1
        blanks = text[line:place] if not text[line:place].strip() else ""
        yield place, f"{_PRAGMA}{blanks}" if blanks or line == place else f"\n{_PRAGMA}"


def spliced(text: str, edits: Iterable[tuple[int, int, str]]) -> str:
    """The text with other parts; places in characters, of parts that do not overlap."""
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def in_characters(text: str, at: int) -> int:
    """A place in bytes as one in characters."""
    return at if text.isascii() else len(text.encode()[:at].decode(errors="replace"))


def _stands_alone(text: str, place: int) -> bool:
    """Whether a pragma may stand in front: within a macro it may not, nor twice."""
    before = text[:place].rstrip()
    line = before[before.rfind("\n") + 1 :].strip()
    return not before.endswith("\\") and not line.startswith("#")


def _loops(source: str) -> Iterator[int]:
    """Where the loops begin."""
    try:
        items = [i for item in parse_items(source) for i in item.walk()]
    except FsrError:
        return
    for item in items:
        if item.kind != "function" or item.body is None or "__global__" in item.head or "__device__" not in item.head:
            continue
        tokens = tokenize(source[item.body : item.end])
        for at, token in enumerate(tokens):
            begins = token.text == "for" and at > 0 and tokens[at - 1].text in ("{", "}", ";")
            if begins and _is_short(tokens, at, source):
                yield item.body + token.start


def _is_short(tokens: list[Token], at: int, source: str) -> bool:
    """Whether the condition compares one variable with a small number."""
    semicolons, depth = list[int](), 0
    for place in range(at + 1, len(tokens)):
        depth += (tokens[place].text == "(") - (tokens[place].text == ")")
        if depth == 0:
            break
        if depth == 1 and tokens[place].text == ";":
            semicolons.append(place)
    if len(semicolons) != 2:
        return False
    test = tokens[semicolons[0] + 1 : semicolons[1]]
    if len(test) < 3 or test[1].text != "<":
        return False
    bound = [t.text for t in test[2:]]
    bound = bound[1:] if bound[0] == "=" else bound
    known = {m.name: m.body.strip() for m in macros(source) if m.params is None}
    number = known.get(bound[0], bound[0]) if len(bound) == 1 else ""
    return number.isdigit() and 1 < int(number) <= MOST_TURNS
