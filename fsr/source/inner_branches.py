"""Conditionals inside functions, decided by what the text itself defines.

What is compiled is read from a copy in which directives and branches that are not compiled are blank, as long as they
were, so that places in the copy are places in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from fsr.source.condition import branch_holds, of_compilers, of_headers, test_of
from fsr.source.conditionals import ELSE, IF, directive_name
from fsr.source.macros import read_define
from fsr.source.token import Token
from fsr.source.tokens import tokenize

_ARCHITECTURE = "__CUDA_ARCH__"
_DEFAULT = re.compile(r"#\s*if(?:ndef\s+|\s+!\s*defined\s*\(?\s*)(\w+)\b[^\n]*\n\s*#\s*define\s+\1\b")
_UNROLL = re.compile(r"#\s*pragma\s+(no)?unroll\b")
_LEAST_AND_MOST = "700", "9990"  # compute capability 7.0 is the oldest (fsr/hardware/limits.py)


@dataclass
class _Open:
    """A conditional that has begun. ``branches``: where each directive begins and ends, and whether its branch is
    compiled; None where that cannot be told."""

    branches: list[tuple[int, int, bool | None]] = field(default_factory=list)

    def begin(self, token: Token, holds: bool | None) -> None:
        """A further branch; what follows a compiled one is not."""
        earlier = [h for _, _, h in self.branches]
        self.branches.append(
            (token.start, token.end, False if True in earlier else None if None in earlier and holds else holds)
        )

    @property
    def compiled(self) -> bool | None:
        return self.branches[-1][2]


def with_branches_decided(text: str) -> str:
    """The copy, byte for byte as long. Conditionals that only a compiler can decide stay as they are."""
    chars = list(text)
    for start, end in chain(*_no_code(text, {}, of_headers)):
        chars[start:end] = [c if c in "\r\n" else " " * len(c.encode()) for c in text[start:end]]
    return "".join(chars)


def with_head_decided(text: str, known: Mapping[str, str | None]) -> str:
    """The copy of a function whose head stands in several branches, character for character as long; the text itself
    where no branch begins before its body. ``known``: what is defined ahead of it."""
    brace = next((t.start for t in tokenize(text) if t.text == "{"), len(text))
    if not any(t.start < brace and directive_name(t.text) in IF for t in tokenize(text) if t.kind == "directive"):
        return text
    return with_all_decided(text, known)


def with_all_decided(text: str, known: Mapping[str, str | None]) -> str:
    """The copy of a piece of a text, character for character as long. ``known``: what is defined ahead of it."""
    return blanked_out(text, chain(*_no_code(text, known, of_compilers)))


def blanked_out(text: str, ranges: Iterable[tuple[int, int]]) -> str:
    """The copy, character for character as long, with blanks in some ranges, in which only line ends stay."""
    chars = list(text)
    for start, end in ranges:
        chars[start:end] = [c if c in "\r\n" else " " for c in text[start:end]]
    return "".join(chars)


def by_architecture(text: str) -> list[list[tuple[int, int]]]:
    """Of each conditional that asks for the GPU (``#if __CUDA_ARCH__ >= 530``, or what such a one defines), and which
    every GPU that fsr runs on decides alike, the ranges that are no code. None where other names are asked for that are
    not the file's, or that a compiler may be given (``#ifndef X``, ``#define X 0``)."""
    own = {m.name for t in tokenize(text) if t.kind == "directive" and (m := read_define(t.text)) is not None}
    own -= {m[1] for m in _DEFAULT.finditer(text)}

    def foreign(name: str) -> bool:
        return name not in own

    least, most, unknown = (_no_code(text, {_ARCHITECTURE: n} if n else {}, foreign) for n in (*_LEAST_AND_MOST, ""))
    return [group for group in least if group in most and group not in unknown]


def by_the_text(text: str) -> list[list[tuple[int, int]]]:
    """Of each conditional that the text itself decides, or that decides nothing, the ranges that are no code."""
    return _no_code(text, {}, of_compilers)


def undefined_asked(text: str) -> set[str]:
    """The names that conditionals ask for, and that neither the text nor a compiler defines."""
    directives = [t.text for t in tokenize(text) if t.kind == "directive"]
    own = {m.name for d in directives if (m := read_define(d)) is not None} | {"defined"}
    asked = [test_of(d) for d in directives if directive_name(d) in (*IF, *ELSE)]
    words = {t.text for test in asked for t in tokenize(test) if t.kind == "name"}
    return {word for word in words - own if not of_compilers(word)}


def _no_code(text: str, known: Mapping[str, str | None], foreign: Callable[[str], bool]) -> list[list[tuple[int, int]]]:
    """The ranges of directives and branches that are not compiled, of each conditional of which that can be told."""
    known = dict(known)
    stack, blank = list[_Open](), list[list[tuple[int, int]]]()
    for token in (t for t in tokenize(text) if t.kind == "directive"):
        name = directive_name(token.text)
        certain = all(one.compiled for one in stack)
        if name in IF:
            stack.append(_Open())
            stack[-1].begin(token, branch_holds(token.text, known, foreign))
        elif name in ELSE and stack:
            stack[-1].begin(token, name == "else" or branch_holds(token.text, known, foreign))
        elif name == "endif" and stack:
            branches = stack.pop().branches
            ranges = _blanked(branches, token) or _of_pragmas(text, branches[0][0], token.end)
            blank += [ranges] if ranges else []
        elif name == "undef" or (macro := read_define(token.text)) is None:
            known |= dict.fromkeys(token.text.split()[1:2]) if name == "undef" else {}
        elif all(one.compiled is not False for one in stack):
            known[macro.name] = macro.body if certain and macro.params is None else None
    return blank


def _blanked(branches: Sequence[tuple[int, int, bool | None]], last: Token) -> list[tuple[int, int]]:
    """What of a whole conditional is no code; nothing where it cannot be told."""
    if any(holds is None for _, _, holds in branches):
        return []
    ends = [*(start for start, _, _ in branches[1:]), last.start]
    found = [(start, stop if holds else end) for (start, stop, holds), end in zip(branches, ends, strict=True)]
    return [*found, (last.start, last.end)]


def _of_pragmas(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """All of a conditional that holds nothing but directions on unrolling, which say nothing of what is computed."""
    inner = (t for t in tokenize(text[start:end]) if t.kind != "comment")
    said = [t for t in inner if t.kind != "directive" or directive_name(t.text) not in (*IF, *ELSE, "endif")]
    return [(start, end)] if said and all(_UNROLL.match(t.text) for t in said) else []
