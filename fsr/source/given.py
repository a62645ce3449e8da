"""Macros that the compiler is given (-D), as pieces before a file's own; and the branches that they decide, or what
the file itself defines and does not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from fsr.source.condition import branch_holds, test_of
from fsr.source.conditionals import directive_name
from fsr.source.inner_branches import with_head_decided
from fsr.source.items import parse_items
from fsr.source.macros import read_define
from fsr.source.pieces import Piece, flatten, scan
from fsr.source.pointers import pointer_named, with_plain_pointers
from fsr.source.tokens import tokenize

PLACE = Path("-D")  # where messages say that they stand


def define_line(text: str) -> str:
    """``#define N 3`` of ``N=3``; a macro without a value is 1."""
    name, equals, value = text.partition("=")
    return f"#define {name} {value if equals else 1}".rstrip()


def with_given(pieces: Sequence[Piece], defines: Sequence[str]) -> tuple[Piece, ...]:
    """The macros as pieces, and behind them those that are compiled under them: of a conditional the branch taken,
    without its directives, so that a type has one meaning and a macro one value. Conditionals of which that cannot be
    told stay whole, and those around kernels that ask for none of the macros given: a kernel that its build leaves out
    can still be named."""
    first = flatten(scan(PLACE, "".join(f"{define_line(text)}\n" for text in defines)))
    return (*first, *_Deciding(pieces, first).kept())


class _Deciding:
    """Follows what is defined through the pieces. ``known``: object-like macros by name; None for one that may be.
    ``given``: names that the given macros decide, macros made of them among them."""

    def __init__(self, pieces: Sequence[Piece], given: Sequence[Piece]) -> None:
        self.pieces, self.given = pieces, {name for p in given for name in p.item.names}
        self.groups = {group[0]: group for group in conditional_groups(pieces)}
        self.known: dict[str, str | None] = {}
        self.pointers: dict[str, str] = {}  # what names of pointers stand for
        for piece in given:
            self.define(piece, certain=True)

    def kept(self) -> list[Piece]:
        return self.through(0, len(self.pieces), certain=True)

    def through(self, at: int, stop: int, *, certain: bool) -> list[Piece]:
        """The pieces of a range that are compiled; ``certain``: the range is."""
        found: list[Piece] = []
        while at < stop:
            group = self.groups.get(at)
            if group is None:
                self.define(self.pieces[at], certain)
                self.pointers |= pointer_named(self.pieces[at])
                found.append(self.as_compiled(self.pieces[at]))
                at += 1
                continue
            branches = list(zip(pairwise(group), self.compiled(group), strict=True))
            whole = self.kept_whole(group) or any(c is None for _, c in branches)
            for (begin, end), compiled in branches:
                found += [self.pieces[begin]] if whole else []
                if compiled is not False:
                    found += self.through(begin + 1, end, certain=certain and compiled is True)
                elif whole:
                    found += self.pieces[begin + 1 : end]
            found += [self.pieces[group[-1]]] if whole else []
            at = group[-1] + 1
        return found

    def compiled(self, group: Sequence[int]) -> list[bool | None]:
        """Of each branch of a conditional whether it is compiled; None where that cannot be told."""
        found: list[bool | None] = []
        for text in (self.pieces[i].text for i in group[:-1]):
            holds = True if directive_name(text) == "else" else branch_holds(text, self.known)
            found.append(False if True in found else None if None in found and holds else holds)
        return found

    def kept_whole(self, group: Sequence[int]) -> bool:
        """Whether a conditional stands around a kernel and asks for none of the macros given."""
        texts = [self.pieces[i].text for i in group[:-1]]
        if any(self.given & {t.text for t in tokenize(test_of(text))} for text in texts):
            return False
        return any("__global__" in self.pieces[i].text for i in range(group[0], group[-1]))

    def as_compiled(self, piece: Piece) -> Piece:
        """A function whose head stands in several branches, which may share its body, as it is compiled, and with
        pointers for the names of pointers in it."""
        if piece.item.kind not in ("function", "prototype"):
            return piece
        raw = piece.raw
        text = with_plain_pointers(with_head_decided(raw, self.known), self.pointers)
        items = [] if text == raw else parse_items(text, strict=False)
        if len(items) != 1 or items[0].kind != piece.item.kind:
            return piece  # nothing is decided, or it is cut where no declaration ends: the compiler has the say
        found, start = items[0], piece.item.start
        body = None if found.body is None else found.body + start
        return replace(piece, item=replace(found, start=start, end=piece.item.end, body=body), decided=text)

    def define(self, piece: Piece, certain: bool) -> None:
        if piece.item.kind == "undef":
            for name in piece.item.names:
                self.known[name] = None  # what asks for it is left to the compiler
        macro = read_define(piece.text) if piece.item.kind == "define" else None
        if macro is not None:
            self.known[macro.name] = macro.body if certain and macro.params is None else None
            if macro.params is None and self.given & piece.item.uses:
                self.given.add(macro.name)


def conditional_groups(pieces: Iterable[Piece]) -> list[list[int]]:
    """The directives of each ``#if … #endif``, as indices; unbalanced ones are left out."""
    groups: list[list[int]] = []
    stack: list[list[int]] = []
    for index, piece in enumerate(pieces):
        if piece.item.kind != "conditional":
            continue
        name = directive_name(piece.text)
        if name in ("if", "ifdef", "ifndef"):
            stack.append([index])
        elif stack:
            stack[-1].append(index)
            if name == "endif":
                groups.append(stack.pop())
    return groups
