"""compare-remainders: ``(x + k) % n`` of an index that a row holds, or holds once it has gone round, by comparisons.

A remainder by what is not known at compile time takes some twenty instructions in 32 bits and a hundred in 64; indices
of periodic borders and rings leave their range by less than one length, where a subtraction does it (Knuth, The Art of
Computer Programming, vol. 2, 4.3: no quotient but 0 and 1). All others are divided as before. Everywhere in the file,
since such remainders often stand in functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from fsr.records import Candidate
from fsr.source.items import flat, parse_items
from fsr.source.macros import macros
from fsr.source.rewrite import insert_helpers
from fsr.source.token import Token
from fsr.source.tokens import tokenize
from fsr.transform.protocol import Move, Subject

GAIN = 1.25
# As % itself in the operands' common type. What is found by comparing is what dividing gives: 0 <= r < b and r is a,
# or a - b.
_HELPER = """template <typename A, typename B>
__device__ __forceinline__ auto fsr_remainder(A x, B n) -> decltype(x % n)
{
    decltype(x % n) a = x, b = n, r = a >= b ? a - b : a;
    return r >= 0 && r < b ? r : a % b;
}
"""
_FREE = frozenset(
    ["=", "(", ",", "[", "{", "}", ";", "return", "+", "-", "<", ">", "?", ":", "&", "|", "^", "!", "~", "+=", "-="]
)
_TEMPLATE = re.compile(r"\btemplate\s*<([^<>]*)>")
_WORD = re.compile(r"[A-Za-z_]\w*")
_GOES_ON = frozenset(["(", "[", ".", "->", "::", "++", "--", "<"])


@dataclass(frozen=True, slots=True)
class CompareRemainders:
    """Remainders of what goes a little way beyond a length, or of all there are, by comparisons first."""

    name: str = "compare-remainders"
    aims_at: frozenset[str] = frozenset(["compute", "instructions", "latency"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """One for the sums among them, and one for all where there are others."""
        found = list(_remainders(subject.candidate.source))
        sums = [one for one in found if one.of_sum]
        if sums:
            yield Move(self.name, "plan", (("which", "sums"),), GAIN)
        if len(found) > len(sums):
            yield Move(self.name, "plan", (("which", "all"),), GAIN if not sums else 1.1)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with calls that compare."""
        old, whole = subject.candidate, move.param("which") == "all"
        text = old.source
        for one in reversed([one for one in _remainders(text) if whole or one.of_sum]):
            text = text[: one.start] + f"fsr_remainder({one.left}, {one.right})" + text[one.end :]
        return replace(old, source=insert_helpers(text, _HELPER), actions=(*old.actions, move.name))


@dataclass(frozen=True, slots=True)
class _Remainder:
    """Where one stands in a text, and of what; ``of_sum``: of a sum or a difference in brackets."""

    start: int
    end: int
    left: str
    right: str
    of_sum: bool


def _remainders(text: str) -> Iterator[_Remainder]:
    """Those of a name or of something in brackets by a variable."""
    tokens = [t for t in tokenize(text) if t.kind not in ("comment", "directive")]
    constant = {m.name for m in macros(text)} | {name for m in _TEMPLATE.finditer(text) for name in _WORD.findall(m[1])}
    ours = [(i.start, i.end) for i in flat(parse_items(text, strict=False)) if any(map(_is_ours, i.names))]
    for at in range(1, len(tokens) - 1):
        if tokens[at].text != "%" or tokens[at + 1].text == "=":
            continue
        if any(start <= tokens[at].start < end for start, end in ours):
            continue  # a helper that candidates are given
        first, last = _left(tokens, at - 1), _right(tokens, at + 1, constant)
        if first is None or last is None:
            continue
        inner = tokens[first + 1 : at - 1] if tokens[first].text == "(" else []
        start, end = tokens[first].start, tokens[last].end
        left, right = text[start : tokens[at - 1].end], text[tokens[at + 1].start : end]
        yield _Remainder(start, end, left, right, _is_sum(inner))


def _is_ours(name: str) -> bool:
    return name.startswith("fsr_")


def _left(tokens: Sequence[Token], at: int) -> int | None:
    """Where the left operand begins that ends at a token: a name, or brackets that no call and no cast is of."""
    first = at
    if tokens[at].text == ")":
        depth = 0
        while first >= 0:
            depth += {")": 1, "(": -1}.get(tokens[first].text, 0)
            if depth == 0:
                break
            first -= 1
    elif tokens[at].kind != "name":
        return None
    before = tokens[first - 1].text if first > 0 else ""
    return first if before in _FREE and tokens[at].text != "return" else None


def _right(tokens: Sequence[Token], at: int, constant: set[str]) -> int | None:
    """Where the right operand ends that begins at a token: a name, or a member of one."""
    if tokens[at].kind != "name" or tokens[at].text in constant or tokens[at].text == "sizeof":
        return None
    while at + 2 < len(tokens) and tokens[at + 1].text in (".", "->") and tokens[at + 2].kind == "name":
        at += 2
    behind = tokens[at + 1].text if at + 1 < len(tokens) else ""
    return None if behind in _GOES_ON and behind != "<" else at


def _is_sum(inner: Sequence[Token]) -> bool:
    depth = 0
    for n, token in enumerate(inner):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(token.text, 0)
        if depth == 0 and n and token.text in ("+", "-") and inner[n - 1].text not in ("*", "/", "%", "("):
            return True
    return False
