"""Names that stand for pointers, ``typedef const real *__restrict__ real_p;``, written out in heads of functions: what
a kernel takes is a pointer to all that reads it then."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from fsr.source.items import flat, parameters_at, parse_items
from fsr.source.macros import read_define
from fsr.source.pieces import Piece
from fsr.source.tokens import Token, close_of, tokenize

_MEANING = re.compile(
    r"(?:const\s+)?[A-Za-z_][\w:]*(?:\s+(?!__restrict)[A-Za-z_][\w:]*){0,3}\s*\*\s*(?:const\b\s*|__restrict(?:__)?\s*|restrict\s*)*"
)


def pointer_named(piece: Piece) -> dict[str, str]:
    """The name of a pointer that a typedef, a ``using`` or a macro gives, with what it stands for, in one line."""
    return _named(piece.item.kind, piece.text)


@lru_cache(maxsize=64)
def pointers_named(text: str) -> Mapping[str, str]:
    """All such names of a file by what they stand for; none that is given twice."""
    found = [_named(item.kind, text[item.start : item.end]) for item in flat(parse_items(text))]
    names = [name for one in found for name in one]
    return {name: meaning for one in found for name, meaning in one.items() if names.count(name) == 1}


def _named(kind: str, written: str) -> dict[str, str]:
    text = " ".join(written.split())
    name = meaning = ""
    if kind == "define":
        macro = read_define(written)
        name, meaning = (macro.name, macro.body.strip()) if macro is not None and macro.params is None else ("", "")
    elif kind == "alias" and (found := re.fullmatch(r"typedef (.*\*.*?)(\w+) ?;", text)):
        meaning, name = found[1].strip(), found[2]
    elif kind == "alias" and (found := re.fullmatch(r"using (\w+) ?= ?(.*\*.*);", text)):
        name, meaning = found[1], found[2].strip()
    return {name: meaning} if name and _MEANING.fullmatch(meaning) else {}


def with_plain_pointers(text: str, pointers: Mapping[str, str]) -> str:
    """A function of the device whose parameters of these types are pointers as they stand; a const before such a name
    is one behind the star."""
    if not any(name in text for name in pointers) or not ("__global__" in text or "__device__" in text):
        return text
    tokens = tokenize(text)
    opening = parameters_at(tokens)
    close = None if opening is None else close_of(tokens, opening)
    if opening is None or close is None:
        return text
    for at in range(close - 1, opening, -1):
        if tokens[at].text in pointers and _is_type(tokens, at):
            begin, meaning = at, pointers[tokens[at].text]
            if tokens[at - 1].text == "const":
                begin, meaning = at - 1, f"{meaning} const"
            text = f"{text[: tokens[begin].start]}{meaning}{text[tokens[at].start + len(tokens[at].text) :]}"
    return text


def _is_type(tokens: Sequence[Token], at: int) -> bool:
    """Whether a parameter is of that type and no other: its name comes next, and nothing but const before it."""
    before = at - 1 if tokens[at - 1].text == "const" else at
    behind = [t.text for t in tokens[at + 1 : at + 3]]
    return (
        tokens[before - 1].text in ("(", ",")
        and len(behind) == 2
        and behind[1] in (",", ")")
        and behind[0].isidentifier()
    )
