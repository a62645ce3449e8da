"""Structs that are nothing but numbers of one type, as a file declares them."""

from __future__ import annotations

import re
from functools import lru_cache

from fsr.hardware.c_types import BY_SPELLING
from fsr.source.items import flat, parse_items
from fsr.source.tokens import spelt, split_commas, tokenize
from fsr.source.types import aliases, plain_type


@lru_cache(maxsize=64)
def numbers_in(source: str, name: str) -> tuple[str, int] | None:
    """The type of a struct's members and how many numbers they are; None where they are of several types, or there is
    more to the struct than members."""
    items = [i for i in flat(parse_items(source, strict=False)) if i.kind in ("record", "alias")]
    texts = [source[i.start : i.end] for i in items if re.search(rf"\b{re.escape(name)}\b", source[i.start : i.end])]
    found = [m for t in texts if (m := re.fullmatch(_record(name), t.strip(), re.DOTALL))]
    if len(found) != 1 or len(texts) != 1:
        return None
    types, count = set[str](), 0
    for line in re.sub(r"//[^\n]*|/\*.*?\*/", " ", found[0]["body"], flags=re.DOTALL).split(";"):
        if not line.strip():
            continue
        parts = [spelt(p) for p in split_commas(tokenize(line))]
        head = re.fullmatch(r"(?P<type>[\w\s]*\w)\s+(?P<first>\w+\s*(?:\[[^\]]*\]\s*)*)", parts[0])
        if head is None:
            return None
        types.add(plain_type(head["type"], aliases(source)))
        for member in (head["first"], *parts[1:]):
            extent = re.fullmatch(r"\s*\w+\s*(?:\[\s*(\d+)\s*\])?\s*", member)
            if extent is None:
                return None
            count += int(extent[1] or 1)
    return (types.pop(), count) if len(types) == 1 and types <= BY_SPELLING.keys() else None


def _record(name: str) -> str:
    named = re.escape(name)
    return rf"(typedef\s+)?struct(\s+{named})?\s*\{{(?P<body>[^{{}}()]*)\}}\s*({named})?\s*;?"
