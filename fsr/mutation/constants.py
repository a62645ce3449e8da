"""Faults in numbers that stand in the text: off by one, of another width, nudged, started elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fsr.mutation.ground import FLOATS, Edit, Function

_FLOATING = re.compile(r"(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][-+]?\d+)?[fF]?$")
_WHOLE = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)([uUlL]*)$")
_ENDLESS = ("INFINITY", "HUGE_VALF", "CUDART_INF_F", "CUDART_INF", "FLT_MAX", "DBL_MAX")


def numbers(function: Function) -> Iterator[Edit]:
    """A whole number one off, halved or doubled; a floating one in its third digit, or of the other sign."""
    for index, token in enumerate(function.tokens):
        if token.kind != "number":
            continue
        if _FLOATING.match(token.text):
            if float(token.text.rstrip("fF")) != 0.0:
                yield Edit("constant-nudged", token.start, token.end, f"({token.text} * 1.001f)")
                yield Edit("constant-negated", token.start, token.end, f"(-{token.text})")
            continue
        match = _WHOLE.match(token.text)
        if match is None or _is_declared_extent(function, index):
            continue
        value, suffix = int(match[1], 0), match[2]
        yield Edit("constant-more", token.start, token.end, f"{value + 1}{suffix}")
        if value > 0:
            yield Edit("constant-less", token.start, token.end, f"{value - 1}{suffix}")
        if value > 2 and value & (value - 1) == 0:
            yield Edit("width-halved", token.start, token.end, f"{value // 2}{suffix}")
            yield Edit("width-doubled", token.start, token.end, f"{value * 2}{suffix}")
        if value >= 0xFFFF and value & (value + 1) == 0:
            yield Edit("mask-narrowed", token.start, token.end, f"0x{value >> (value.bit_length() // 2):x}{suffix}")


def initial_values(function: Function) -> Iterator[Edit]:
    """A variable that starts elsewhere: at zero, at one, one further, at what is not the least of all numbers."""
    tokens = function.tokens
    for index in range(1, len(tokens) - 2):
        equals, value, after = tokens[index : index + 3]
        if equals.text == "=" and after.text in (";", ",") and value.kind in ("number", "name"):
            name = function.types.get(tokens[index - 1].text, "")
            if value.kind == "number":
                zero = re.fullmatch(r"0*\.?0*[fFuUlL]*", value.text) is not None
                yield Edit("initial-value", value.start, value.end, "1" if zero else "0")
            elif name and value.text not in ("true", "false", "nullptr"):
                yield Edit("initial-value", value.start, value.end, f"{value.text} + 1")
                yield Edit("initial-zero", value.start, value.end, "0")
    for index, token in enumerate(tokens):
        if token.text in _ENDLESS:
            negative = bool(index) and tokens[index - 1].text == "-"
            start = tokens[index - 1].start if negative else token.start
            sign = "-" if negative else ""
            yield Edit("infinity-zero", start, token.end, "0.0f")
            yield Edit("infinity-finite", start, token.end, f"{sign}1e30f")


def extents(function: Function) -> Iterator[Edit]:
    """A local or shared array with an element too few."""
    for index, token in enumerate(function.tokens):
        if token.kind == "number" and _is_declared_extent(function, index) and _WHOLE.match(token.text):
            yield Edit("array-short", token.start, token.end, f"{token.text} - 1")


def floats(function: Function) -> set[str]:
    """Names of floating variables, parameters and elements."""
    return {name for name, type_ in function.types.items() if type_ in FLOATS}


def _is_declared_extent(function: Function, index: int) -> bool:
    """Whether a number is the size of an array that is declared here."""
    tokens = function.tokens
    if index < 3 or tokens[index - 1].text != "[" or index + 1 >= len(tokens) or tokens[index + 1].text != "]":
        return False
    at = index - 2
    while at > 0 and tokens[at].text == "]":
        at -= 3
    return at > 0 and tokens[at].kind == "name" and tokens[at - 1].kind == "name"
