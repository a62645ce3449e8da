"""Sources that are small and compile for hours: deep templates, huge arrays, deep nesting."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fsr.source.tokens import Token, close_angle

NESTING_LIMIT = 200  # brackets
RECURSION_LIMIT = 256  # a recursive template's literal argument; 16 when it branches
ARRAY_LIMIT = 1 << 20  # elements of one declared array
Found = tuple[str, Token]


def first_bomb(tokens: Sequence[Token]) -> Found | None:
    """The first construct that would make a compiler explode: (why, where) or None."""
    return _nesting(tokens) or _arrays(tokens) or _templates(tokens)


def _nesting(tokens: Sequence[Token]) -> Found | None:
    depth = 0
    for token in tokens:
        depth += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
        if depth > NESTING_LIMIT:
            return f"brackets nested over {NESTING_LIMIT} deep", token
    return None


def _arrays(tokens: Sequence[Token]) -> Found | None:
    """Literal extents of declared arrays (a name, then ``[n][m]``), products over the limit."""
    index = 0
    while index < len(tokens):
        total, at = 1, index + 1
        while tokens[index].kind == "name" and at + 2 < len(tokens) and tokens[at].text == "[":
            close = next((i for i in range(at, len(tokens)) if tokens[i].text == "]"), at)
            value = _literal(tokens[at + 1 : close])
            if value is None or close == at:
                break
            total *= value
            at = close + 1
        if total > ARRAY_LIMIT and _declares(tokens, index):
            return f"an array of {total} elements", tokens[index]
        index = max(index + 1, at if total > 1 else 0)
    return None


def _declares(tokens: Sequence[Token], index: int) -> bool:
    return index > 0 and (tokens[index - 1].kind == "name" or tokens[index - 1].text in ("*", ">", ","))


def _literal(tokens: Sequence[Token]) -> int | None:
    """The value of an extent made of integer literals with * and << between; None for anything else."""
    value: int | None = None
    operator = "*"
    text = "".join(t.text for t in tokens).replace("<<", "~")
    for part in re.findall(r"~|\*|\w+|.", text):
        if part in "~*":
            operator = part
            continue
        match = re.fullmatch(r"(0x[0-9a-fA-F]+|\d+)[uUlL]*", part)
        if match is None:
            return None
        number = int(match[1], 0) if not match[1].startswith("0") or "x" in match[1] else int(match[1] or "0", 8)
        value = number if value is None else value << min(number, 64) if operator == "~" else value * number
    return value


def _templates(tokens: Sequence[Token]) -> Found | None:
    """A template that names itself with another argument, used with a large literal."""
    for index, token in enumerate(tokens):
        if token.text != "template":
            continue
        name, start = _templated_name(tokens, index)
        if not name:
            continue
        stop = next((i for i in range(start + 1, len(tokens)) if tokens[i].text == "template"), len(tokens))
        again = sum(
            a.text == name and b.text == "<" and _steps(tokens[i + 2 : i + 8])
            for i, (a, b) in enumerate(zip(tokens[start + 1 : stop], tokens[start + 2 : stop], strict=False), start + 1)
        )
        if not again:
            continue
        limit = RECURSION_LIMIT if again == 1 else 16
        for at in range(len(tokens) - 2):
            if tokens[at].text == name and tokens[at + 1].text == "<" and tokens[at + 2].kind == "number":
                value = _literal([tokens[at + 2]])
                if value is not None and value > limit:
                    return f"the recursive template {name!r} at depth {value}", tokens[at]
    return None


def _steps(tokens: Sequence[Token]) -> bool:
    return any(t.text in ("-", "+", "/", "*") for t in tokens)


def _templated_name(tokens: Sequence[Token], index: int) -> tuple[str, int]:
    """The name that a template declares and where it stands; ('', index) when none is found."""
    close = close_angle(tokens, index + 1) if index + 1 < len(tokens) and tokens[index + 1].text == "<" else None
    if close is None:
        return "", index
    for at in range(close + 1, min(close + 16, len(tokens) - 1)):
        after = tokens[at + 1].text
        if (
            tokens[at].kind == "name"
            and after in ("(", "{", ":", "<", "=")
            and not tokens[at].text.startswith("__launch")
        ):
            return tokens[at].text, at
    return "", index
