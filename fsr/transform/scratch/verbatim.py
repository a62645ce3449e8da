"""What verbatim text does with pointers: reaching elements through them, or handing them to functions."""

from __future__ import annotations

import re
from collections.abc import Collection

from fsr.analysis.calls import LOADS
from fsr.source.tokens import close_of, split_commas, tokenize

_NO_CALLS = frozenset(("if", "while", "for", "switch", "return", "sizeof"))
_BEFORE_STAR = re.compile(r"(?:^|[-+=(,;:?!{}<>|%]|\breturn)\s*\*$")

Calls = set[tuple[str, frozenset[int]]]


def calls_with(text: str, names: Collection[str]) -> Calls | None:
    """The functions that are handed one of some pointers, and in which places; None where one of them is used in any
    other way than to reach an element (``p[i]``, ``*p``, ``*p++``)."""
    calls, handed = _handed(text, names)
    for found in re.finditer(rf"(?<![\w.])(?:{'|'.join(map(re.escape, names))})\b", text):
        if found.start() in handed:
            continue
        before, behind = text[: found.start()].rstrip(), text[found.end() :].lstrip()
        stepped = re.sub(r"(\+\+|--)$", "", before).rstrip()
        if _BEFORE_STAR.search(stepped):
            continue
        if not (behind.startswith("[") and before == stepped and not before.endswith(("&", "->"))):
            return None
    return None if any(name in LOADS or name.startswith("atomic") for name, _ in calls) else calls


def _handed(text: str, names: Collection[str]) -> tuple[Calls, set[int]]:
    """The calls with pointers, and where these stand in the text."""
    calls: Calls = set()
    handed: set[int] = set()
    tokens = tokenize(text)
    for at, token in enumerate(tokens[:-1]):
        if token.kind != "name" or token.text in _NO_CALLS or tokens[at + 1].text != "(":
            continue
        arguments = split_commas(tokens[at + 2 : close_of(tokens, at + 1) or at + 2])
        own = {
            n: a[0] for n, a in enumerate(arguments) if a and a[0].text in names and (len(a) == 1 or a[1].text == "+")
        }
        if own:
            calls.add((token.text, frozenset(own)))
            handed |= {t.start for t in own.values()}
    return calls, handed
