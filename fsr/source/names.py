"""Names in generated text: written ``$tile`` in templates, and kept clear of everything the user's code names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

_WORD = re.compile(r"[A-Za-z_]\w*")


def words(text: str) -> frozenset[str]:
    """Every identifier in a text."""
    return frozenset(_WORD.findall(text))


def reached(first: Iterable[str], below: Mapping[str, Collection[str]]) -> frozenset[str]:
    """These names and all that they lead to. ``below``: what each name leads to at once."""
    found = set(first)
    waiting = list(found)
    while waiting:
        more = set(below.get(waiting.pop(), ())) - found
        found |= more
        waiting += more
    return frozenset(found)


_CALLED = re.compile(r"(?<![\w$])([A-Za-z_]\w*)\(")


def settle(text: str, taken: frozenset[str]) -> str:
    """The text with every ``$name`` as ``name``, or with underscores added where that is taken, or is a function that
    the text calls."""
    called = frozenset(_CALLED.findall(text))

    def name(match: re.Match[str]) -> str:
        found = match.group(1)
        while found in taken or found in called:
            found += "_"
        return found

    return re.sub(r"\$([A-Za-z_]\w*)", name, text)


def indent(lines: list[str], levels: int = 1) -> list[str]:
    """The lines, four blanks a level further in; preprocessor lines other than pragmas are none here."""
    return [" " * 4 * levels + line for line in lines]


def unrolled(var: str, count: int, inner: list[str]) -> list[str]:
    """A counted loop from 0 that the compiler is told to unroll."""
    return ["#pragma unroll", f"for (int {var} = 0; {var} < {count}; ++{var}) {{", *indent(inner), "}"]
