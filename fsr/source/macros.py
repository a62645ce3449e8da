"""Expand a text's own function-like macros, for analysis: what the compiler is given stays as written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from fsr.source.tokens import Token, close_of, split_commas, tokenize

_DEFINE = re.compile(r"#\s*define\s+(\w+)\(([\w\s,]*)\)(.*)", re.DOTALL)
_LIMIT = 200_000  # characters: past this an expansion is a bomb, not a help


@dataclass(frozen=True, slots=True)
class Macro:
    """A function-like macro without ``#`` and ``##``."""

    params: tuple[str, ...]
    body: str


def function_macros(text: str) -> dict[str, Macro]:
    """The macros that :func:`expand` can expand: defined exactly once, no ``#``, no ``...``."""
    found: dict[str, Macro] = {}
    twice: set[str] = set()
    for token in tokenize(text):
        match = _DEFINE.fullmatch(token.text) if token.kind == "directive" else None
        if match:
            twice |= {match[1]} & set(found)
            params = tuple(p.strip() for p in match[2].split(",") if p.strip())
            body = match[3].replace("\\\r\n", " ").replace("\\\n", " ")
            found[match[1]] = Macro(params, re.sub(r"//[^\n]*|/\*.*?\*/", " ", body, flags=re.DOTALL).strip())
    return {name: macro for name, macro in found.items() if name not in twice and "#" not in macro.body}


def expand(text: str) -> str:
    """The text with its own function-like macros expanded, inside out, a bounded number of times."""
    macros = function_macros(text)
    for _ in range(8):
        changed = _once(text, macros)
        if changed == text or len(changed) > _LIMIT:
            break
        text = changed
    return text


def _once(text: str, macros: Mapping[str, Macro]) -> str:
    tokens = tokenize(text)
    out: list[str] = []
    position = index = 0
    while index < len(tokens) - 1:
        token = tokens[index]
        macro = macros.get(token.text) if token.kind == "name" and tokens[index + 1].text == "(" else None
        close = close_of(tokens, index + 1) if macro else None
        if macro and close is not None:
            args = [_source(text, part) for part in split_commas(tokens[index + 2 : close])]
            if len(args) == len(macro.params):
                out.append(text[position : token.start] + _substitute(macro, args))
                position, index = tokens[close].end, close + 1
                continue
        index += 1
    return "".join(out) + text[position:]


def _source(text: str, tokens: list[Token]) -> str:
    return text[tokens[0].start : tokens[-1].end] if tokens else ""


def _substitute(macro: Macro, args: list[str]) -> str:
    bound = dict(zip(macro.params, args, strict=True))
    return re.sub(r"[A-Za-z_]\w*", lambda m: bound.get(m[0], m[0]), macro.body)
