"""The members of a file's structures."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from fsr.source.items import flat, parse_items
from fsr.source.macros import macros
from fsr.source.tokens import spelt, split_commas, tokenize

_MEMBER = re.compile(r"(\w+)((?:\[\w+\])*)")


@dataclass(frozen=True, slots=True)
class Kept:
    """A member: its type, and its extents where it is an array."""

    type: str
    dims: tuple[int, ...] = ()


@lru_cache(maxsize=64)
def members_of(source: str, name: str) -> dict[str, Kept] | None:
    """The members of a structure of that name; None where the file has none, several, or one that is more than numbers
    and arrays of numbers."""
    items = [i for i in flat(parse_items(source, strict=False)) if i.kind in ("record", "alias")]
    texts = [source[i.start : i.end].strip() for i in items]
    named = re.escape(name.removeprefix("const ").removeprefix("struct "))
    whole = rf"(?:typedef\s+)?struct(?:\s+\w+)?\s*\{{(?P<body>[^{{}}()]*)\}}\s*{named}\s*;"
    own = rf"struct\s+{named}\s*\{{(?P<body>[^{{}}()]*)\}}\s*;?"
    found = [m for t in texts if (m := re.fullmatch(f"{whole}", t) or re.fullmatch(own, t))]
    if len(found) != 1:
        return None
    numbers = {m.name: m.body.strip() for m in macros(source) if m.params is None}
    members = dict[str, Kept]()
    for line in re.sub(r"//[^\n]*|/\*.*?\*/", " ", found[0]["body"], flags=re.DOTALL).split(";"):
        if not line.strip():
            continue
        told = _line(line, numbers)
        if told is None or told.keys() & members.keys():
            return None
        members |= told
    return members or None


def _line(line: str, numbers: dict[str, str]) -> dict[str, Kept] | None:
    """What one declaration declares."""
    parts = [spelt(p).strip() for p in split_commas(tokenize(line))]
    head = re.fullmatch(r"(?P<type>[\w\s:]*\w)\s+(?P<first>\w+\s*(?:\[[^\]]*\]\s*)*)", parts[0])
    if head is None or "volatile" in head["type"] or "const" in head["type"].split():
        return None
    found = dict[str, Kept]()
    for part in (head["first"], *parts[1:]):
        member = _MEMBER.fullmatch(re.sub(r"\s+", "", part))
        if member is None:
            return None
        extents = [numbers.get(e, e) for e in re.findall(r"\w+", member[2])]
        if not all(e.isdigit() and not (e[0] == "0" and e != "0") for e in extents):
            return None
        found[member[1]] = Kept(head["type"], tuple(map(int, extents)))
    return found
