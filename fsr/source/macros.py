"""Expand a text's own function-like macros, for analysis: what the compiler is given stays as written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from fsr.source.tokens import Token, close_of, split_commas, tokenize

_DEFINE = re.compile(r"#\s*define\s+(\w+)(?:\(([^()]*)\))?(.*)", re.DOTALL)
_COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LIMIT = 200_000  # characters: past this an expansion is a bomb, not a help


@dataclass(frozen=True, slots=True)
class Macro:
    """A ``#define``: ``params`` None for an object-like one; ``body`` on one line, without comments."""

    name: str
    params: tuple[str, ...] | None
    body: str


@lru_cache(maxsize=64)
def macros(text: str) -> tuple[Macro, ...]:
    """Every ``#define`` of a text, in order."""
    found = []
    for token in tokenize(text) if "define" in text else ():
        match = _DEFINE.fullmatch(token.text) if token.kind == "directive" else None
        if match:
            params = None if match[2] is None else tuple(p.strip() for p in match[2].split(",") if p.strip())
            body = re.sub(r"\\\r?\n", " ", match[3])
            found.append(Macro(match[1], params, _COMMENT.sub(lambda m: m[1] or " ", body).strip()))
    return tuple(found)


def function_macros(text: str) -> dict[str, Macro]:
    """The macros that :func:`expand` can expand: function-like, defined exactly once, no ``#``, no ``...``."""
    found = [m for m in macros(text) if m.params is not None]
    names = [m.name for m in found]
    return {m.name: m for m in found if names.count(m.name) == 1 and "#" not in m.body and "..." not in str(m.params)}


def expand(text: str) -> str:
    """The text with its own function-like macros expanded, inside out, a bounded number of times."""
    known = function_macros(text)
    for _ in range(8):
        changed = _once(text, known)
        if changed == text or len(changed) > _LIMIT:
            break
        text = changed
    return text


def _once(text: str, known: Mapping[str, Macro]) -> str:
    tokens = tokenize(text)
    out: list[str] = []
    position = index = 0
    while index < len(tokens) - 1:
        token = tokens[index]
        macro = known.get(token.text) if token.kind == "name" and tokens[index + 1].text == "(" else None
        close = close_of(tokens, index + 1) if macro else None
        if macro and close is not None:
            args = [_source(text, part) for part in split_commas(tokens[index + 2 : close])]
            if len(args) == len(macro.params or ()):
                out.append(text[position : token.start] + _substitute(macro, args))
                position, index = tokens[close].end, close + 1
                continue
        index += 1
    return "".join(out) + text[position:]


def _source(text: str, tokens: list[Token]) -> str:
    return text[tokens[0].start : tokens[-1].end] if tokens else ""


def _substitute(macro: Macro, args: list[str]) -> str:
    bound = dict(zip(macro.params or (), args, strict=True))
    return re.sub(r"[A-Za-z_]\w*", lambda m: bound.get(m[0], m[0]), macro.body)
