"""Conditional compilation in tokens: which directives belong together, and which branch a compiler would take."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from fsr.source.token import Token

IF = ("if", "ifdef", "ifndef")
ELSE = ("else", "elif", "elifdef", "elifndef")
GIVEN = frozenset((
    "__CUDACC__", "__CUDA_ARCH__", "__NVCC__", "__cplusplus", "CUDA_VERSION", "CUDART_VERSION", "__CUDACC_VER_MAJOR__",
))  # fmt: skip
_CONDITION = re.compile(r"#\s*(?:el)?(?P<word>ifdef|ifndef|if)\b\s*(?P<rest>.*)", re.DOTALL)


def directive_name(text: str) -> str:
    """``define`` of ``#  define X``; empty for a lone ``#``."""
    match = re.match(r"#\s*(\w*)", text)
    return match[1] if match else ""


def follow_conditional(directive: str, depth: int, at_if: list[int]) -> int:
    """The bracket depth after a directive, given a stack of the depths at each open ``#if``."""
    name = directive_name(directive)
    if name in IF:
        at_if.append(depth)
    elif name in ELSE and at_if:
        return at_if[-1]
    elif name == "endif" and at_if:
        at_if.pop()
    return depth


def endif_of(tokens: Sequence[Token], at: int) -> int:
    """The index of the ``#endif`` that ends the conditional whose ``#else`` or ``#elif`` is at ``at``."""
    depth = 1
    for index in range(at + 1, len(tokens)):
        if tokens[index].kind == "directive":
            name = directive_name(tokens[index].text)
            depth += (name in IF) - (name == "endif")
            if depth == 0:
                return index
    return len(tokens) - 1


def closed_outside(tokens: Sequence[Token]) -> tuple[int, bool]:
    """How many conditionals the tokens end whose ``#if`` stands before them, and whether they hold the ``#else`` of a
    further one that goes on behind them."""
    depth, ends, goes_on = 0, 0, False
    for token in tokens:
        name = directive_name(token.text) if token.kind == "directive" else ""
        if name in IF:
            depth += 1
        elif name in ELSE and depth == 0:
            goes_on = True
        elif name == "endif":
            ends, goes_on, depth = (ends + 1, False, 0) if depth == 0 else (ends, goes_on, depth - 1)
    return ends, goes_on


def taken(tokens: Sequence[Token], defined: Collection[str]) -> list[Token]:
    """The tokens without directives and without the branches that are not compiled when the names ``defined`` are.

    Conditions are read as far as ``#ifdef``, ``#ifndef``, ``defined(X)``, ``!`` and numbers go; of any other the first
    branch is taken.
    """
    kept: list[Token] = []
    states: list[tuple[bool, bool]] = []  # of each open #if: whether this branch is taken, whether one has been
    for token in tokens:
        if token.kind != "directive":
            if all(now for now, _ in states):
                kept.append(token)
            continue
        name = directive_name(token.text)
        if name in IF:
            now = _holds(token.text, defined)
            states.append((now, now))
        elif name in ELSE and states:
            _, before = states.pop()
            now = not before and (name == "else" or _holds(token.text, defined))
            states.append((now, before or now))
        elif name == "endif" and states:
            states.pop()
    return kept


def _holds(directive: str, defined: Collection[str]) -> bool:
    match = _CONDITION.match(directive)
    rest = re.sub(r"/\*.*?\*/|//.*", " ", match["rest"] if match else "", flags=re.DOTALL).strip()
    if match is None or match["word"] != "if":
        known = rest in defined or rest in GIVEN
        return known == (match is None or match["word"] == "ifdef")
    test = re.fullmatch(r"(?P<no>!?)\s*(?:defined\s*\(?\s*(?P<name>\w+)\s*\)?|(?P<number>\d+))", rest)
    if test is None:
        return True
    value = test["name"] in defined or test["name"] in GIVEN if test["name"] else int(test["number"]) != 0
    return value != bool(test["no"])
