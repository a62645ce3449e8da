"""How a kernel uses a structure that it takes by value: member by member, or as a whole."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fsr.source.macros import read_define
from fsr.source.pieces import Piece
from fsr.source.structures import Structure
from fsr.source.tokens import Token, close_of, spelt

_SETS = frozenset(("=", "+", "-", "*", "/", "%", "&", "|", "^"))
_BEFORE_A_VALUE = frozenset(("return", "case", "else", "sizeof", "co_return", "throw", "do", "in"))


@dataclass(frozen=True, slots=True)
class Uses:
    """``places``: start, end and path of each member named in the body; ``read``: their paths. ``whole``: it is used
    as a whole too, so that one must be there. ``all_through_it``: something may change it, or a name may mean another
    thing, so that members must be read from that one."""

    places: tuple[tuple[int, int, str], ...]
    read: frozenset[str]
    whole: bool
    all_through_it: bool


def uses_of(
    pieces: Sequence[Piece], tokens: Sequence[Token], body: int, name: str, type_: str, structure: Structure
) -> Uses:
    """The uses of the parameter ``name`` in the body that token ``body`` opens."""
    found = _Reading(tokens, name, structure)
    for at in range(body + 1, len(tokens)):
        if tokens[at].kind == "directive":
            found.hidden = found.hidden or re.search(rf"\b{name}\b", tokens[at].text) is not None
        elif tokens[at].kind == "name" and tokens[at].text == name and tokens[at - 1].text not in (".", "->", "::"):
            found.use(at)
    macros = (read_define(p.text) for p in pieces if p.item.kind == "define" and name in p.item.uses)
    found.hidden = found.hidden or any(m is not None and name not in (m.params or ()) for m in macros)
    named = {t.text for t in tokens[body:] if t.kind == "name"}
    pasting = (p for p in pieces if p.item.kind == "define" and "##" in p.text and set(p.item.names) & named)
    found.hidden = found.hidden or any(pasting)
    whole = found.whole or found.hidden
    changed = found.written or found.shadowed or found.hidden or _taken_to_be_changed(pieces, type_)
    if whole and not structure.initialiser:
        changed = True  # it is assigned to, so that it is no constant
    return Uses(tuple(found.places), frozenset(p for _, _, p in found.places), whole, whole and changed)


class _Reading:
    def __init__(self, tokens: Sequence[Token], name: str, structure: Structure) -> None:
        self.tokens, self.name, self.structure = tokens, name, structure
        self.paths = {leaf.path for leaf in structure.leaves}
        self.places: list[tuple[int, int, str]] = []
        self.whole = self.written = self.shadowed = self.hidden = False

    def use(self, at: int) -> None:
        before, after = self.tokens[at - 1], self._text(at + 1)
        if after != ".":
            self.whole = True
            declares = (before.kind == "name" and before.text not in _BEFORE_A_VALUE) or before.text in (">", "*", "&")
            self.shadowed = self.shadowed or (declares and after in ("=", ";", ",", "[", "{", "(", ":", ")"))
            self.written = self.written or (after == "=" and self._text(at + 2) != "=")
            address = self._is_address(at - 1)
            self.written = self.written or address
            return
        path, end = self._path(at)
        if path not in self.paths:
            self.whole = True
            called = self._text(at + 2)
            if self._text(at + 3) in ("(", "<") and called not in self.structure.constant_calls:
                self.written = True
            last = self._chain_end(at)
            decays = f"{path}[0]" in self.paths and self._text(end + 1) != "["  # its address may go anywhere
            address = self._is_address(at - 1)
            self.written = self.written or decays or address or self._is_written(at, last)
            return
        if self._is_address(at - 1):
            self.whole = self.written = True  # its neighbours can be reached from its address
            return
        self.written = self.written or self._is_written(at, end)
        self.places.append((self.tokens[at].start, self.tokens[end].end, path))

    def _path(self, at: int) -> tuple[str, int]:
        """The longest path to a leaf from token ``at``, and the token that ends it."""
        path, end = "", at
        while True:
            following = self._text(end + 1)
            if following == "." and end + 2 < len(self.tokens):
                path, end = path + ("." if path else "") + self.tokens[end + 2].text, end + 2
            elif following == "[":
                close = close_of(self.tokens, end + 1)
                inside = spelt(self.tokens[end + 2 : close]) if close is not None else ""
                if close is None or not inside.isdigit():
                    return path, end
                path, end = f"{path}[{inside}]", close
            else:
                return path, end
            if path in self.paths:
                return path, end

    def _chain_end(self, at: int) -> int:
        """The last token of ``p.a[i].b``."""
        end = at
        while self._text(end + 1) in (".", "["):
            if self._text(end + 1) == ".":
                end += 2
            else:
                end = close_of(self.tokens, end + 1) or len(self.tokens) - 1
        return min(end, len(self.tokens) - 1)

    def _is_written(self, at: int, end: int) -> bool:
        """Whether ``p.a`` is assigned to, counted up or bound: it is the structure of its own that changes then."""
        one, two, three = (self._text(end + n) for n in (1, 2, 3))
        if one == "=" and two != "=":
            return True
        if one in _SETS and two == "=" and three != "=":
            return True
        if one == two and one in ("+", "-") and self._joined(end + 1):
            return True
        if one == two and one in ("<", ">") and three == "=":
            return True
        before = (self._text(at - 2), self._text(at - 1))
        return before in (("+", "+"), ("-", "-")) and self._joined(at - 2)

    def _joined(self, at: int) -> bool:
        return self.tokens[at].end == self.tokens[at + 1].start

    def _is_address(self, at: int) -> bool:
        """Whether a token is a ``&`` that takes an address, and no operator: ``a & g.x``, ``a && g.x``."""
        both = self._text(at - 1) == "&" and self._joined(at - 1) and self._is_value(at - 2)
        return self._text(at) == "&" and not self._is_value(at - 1) and not both

    def _is_value(self, at: int) -> bool:
        """Whether a token ends a value, so that a ``&`` behind it is an operator."""
        token = self.tokens[at]
        return token.kind in ("number", "string") or token.text in (")", "]") or (
            token.kind == "name" and token.text not in _BEFORE_A_VALUE
        )  # fmt: skip

    def _text(self, at: int) -> str:
        return self.tokens[at].text if 0 <= at < len(self.tokens) else ""


def _taken_to_be_changed(pieces: Sequence[Piece], type_: str) -> bool:
    """Whether a function takes such structures by a reference that is not const."""
    bare = re.escape(re.sub(r"<.*", "", type_).rpartition("::")[2])
    named = rf"(?:\bstruct\s+)?(?:\w+::)*\b{bare}\b(?:\s*<[^;{{}}()]*?>)?"
    taken = re.compile(rf"(?P<const>\bconst\s+)?{named}\s*(?P<east>\bconst\b)?\s*&")
    functions = (p for p in pieces if p.item.kind in ("function", "prototype", "record"))
    return any(not (m["const"] or m["east"]) for p in functions for m in taken.finditer(p.text))
