"""unroll-functions: loops of constant length in the functions of the file, unrolled whole.

An array that a loop goes through lies in local memory unless the loop is unrolled: only then are its elements
registers. Of a cipher's or a hash's rounds a compiler that decides by size leaves some as loops.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.errors import FsrError
from fsr.records import Candidate
from fsr.source.items import parse_items
from fsr.source.macros import macros
from fsr.source.token import Token
from fsr.source.tokens import tokenize
from fsr.transform.protocol import Move, Subject

MOST = 128  # turns
GAIN = 1.15
_PRAGMA = "#pragma unroll\n"


@dataclass(frozen=True, slots=True)
class UnrollFunctions:
    """A pragma on every such loop that has none."""

    name: str = "unroll-functions"
    aims_at: frozenset[str] = frozenset(["latency", "instructions", "compute", "uncoalesced"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """One for the file."""
        if any(_loops(subject.candidate.source)):
            yield Move(self.name, "plan", (), GAIN)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with the pragmas."""
        old = subject.candidate
        text = old.source
        for place in sorted(_loops(text), reverse=True):
            line = text.rfind("\n", 0, place) + 1
            blanks = text[line:place] if not text[line:place].strip() else ""
            text = f"{text[:place]}{_PRAGMA}{blanks}{text[place:]}" if blanks or line == place else (
                f"{text[:place]}\n{_PRAGMA}{text[place:]}"
            )  # fmt: skip
        return replace(old, source=text, actions=(*old.actions, move.name))


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
    return number.isdigit() and 1 < int(number) <= MOST
