"""Dynamic shared memory that is declared with a size.

``extern __shared__ float s[256];`` is the launch's dynamic shared memory, as ``s[]`` is: how much there is, the launch
says and not the declaration. Without its first extent all that looks at a unit takes it for what it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from fsr.source.token import Token
from fsr.source.tokens import close_of, tokenize


def without_sizes(text: str) -> str:
    """The text with such arrays open, line for line. One whose own size is asked for (``sizeof(s)``) keeps it."""
    if "extern" not in text or "__shared__" not in text:
        return text
    tokens, parts, end = tokenize(text), list[str](), 0
    for at, token in enumerate(tokens):
        if token.text not in ("extern", "__shared__") or token.start < end:
            continue
        extent = _extent(tokens, at)
        if extent is None or _asked_for(tokens[extent[0] - 1].text, text):
            continue
        opening, closing = tokens[extent[0]].end, tokens[extent[1]].start
        parts += [text[end:opening], "\n" * text.count("\n", opening, closing)]
        end = closing
    return "".join([*parts, text[end:]])


def _extent(tokens: Sequence[Token], at: int) -> tuple[int, int] | None:
    """The brackets around the first extent of the one array that the statement from ``at`` declares so."""
    words, index, found = set[str](), at, list[tuple[int, int]]()
    while index < len(tokens) and tokens[index].text not in (";", "{", "}", "=", ","):
        if tokens[index].text in ("(", "["):
            close = close_of(tokens, index)
            if close is None:
                return None
            if tokens[index].text == "[" and (found or tokens[index - 1].kind == "name"):
                found.append((index, close))
            index = close
        words.add(tokens[index].text)
        index += 1
    whole = index < len(tokens) and tokens[index].text == ";" and {"extern", "__shared__"} <= words
    return found[0] if whole and found and found[0][1] > found[0][0] + 1 else None


def _asked_for(name: str, text: str) -> bool:
    """Whether something depends on the array's type: its size, or a loop over all of it."""
    return re.search(rf"\b(?:sizeof|decltype)\s*\(?\s*{name}\s*(?!\s*\[)\W|:\s*{name}\s*\)", text) is not None
